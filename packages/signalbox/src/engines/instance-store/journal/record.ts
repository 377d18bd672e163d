/**
 * What the journal's segments consist of.
 *
 *   length of the payload (4 bytes) · CRC-32 of everything after it, XOR the segment's number (4) · kind (1) · reserved (1)
 *   · page size / 256 (2) · the instance's id (20) · payload
 *
 * The number is there because a segment may be written over a former one, whose records must not be taken for its own.
 *
 * Numbers are little endian, except those inside frames, which are SQLite's. A record that is cut off or whose checksum is wrong is where
 * the segment ends: the process or the power went while it was written, so nobody was told of it.
 */
import { crc32 } from "node:zlib";

export const RECORD_KINDS = {
  /** Bytes that instances start as. The id is the template's own, and that of the default one `NO_ID`. */
  template: 0,
  /** The payload is the id of a template that stands before it in the segment; none means the default one. */
  created: 1,
  /** Whole transactions as frames of SQLite's log: page number, size of the database after a commit, 16 more bytes, the page. */
  frames: 2,
  destroyed: 3,
} as const;

export type RecordKind = (typeof RECORD_KINDS)[keyof typeof RECORD_KINDS];

export interface JournalRecord {
  readonly kind: RecordKind;
  /** 40 hexadecimal digits. */
  readonly id: string;
  readonly pageBytes: number;
  readonly payload: Buffer;
}

export const ID_BYTES = 20;
/** The id of records that concern no instance. */
export const NO_ID: Buffer = Buffer.alloc(ID_BYTES);

/** What new instances start as. */
export interface Template {
  /** `NO_ID` for the default one, made from the bytes for any other. */
  readonly id: Buffer;
  readonly bytes: Uint8Array;
}

const RECORD_HEAD_BYTES = 32;
const CHECKED_FROM = 8;
const PAGE_UNIT = 256;

/** Records put together for one write; the buffer grows as needed and is used again. */
export class RecordBuffer {
  #bytes: Buffer;
  #length = 0;
  /** The segment number in the checksums. */
  #segment = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
  }

  /** To be written to the segment of this number, which was not known yet when they were put together. */
  bytesFor(segment: number): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length);
    const change = this.#segment ^ segment;
    for (let at = 0; change !== 0 && at < bytes.length; at += RECORD_HEAD_BYTES + bytes.readUInt32LE(at))
      bytes.writeUInt32LE((bytes.readUInt32LE(at + 4) ^ change) >>> 0, at + 4);
    this.#segment = segment;
    return bytes;
  }

  /** Empties it; a buffer that one large record has blown up beyond `maxCapacity` is given back. */
  clear(maxCapacity: number): void {
    this.#length = 0;
    this.#segment = 0;
    if (this.#bytes.length > maxCapacity) this.#bytes = Buffer.allocUnsafeSlow(maxCapacity);
  }

  add(kind: RecordKind, id: Uint8Array, pageBytes: number, payload: Uint8Array): void {
    const start = this.#length;
    const end = start + RECORD_HEAD_BYTES + payload.length;
    this.#reserve(end);
    const bytes = this.#bytes;
    bytes.writeUInt32LE(payload.length, start);
    bytes[start + 8] = kind;
    bytes[start + 9] = 0;
    bytes.writeUInt16LE(pageBytes / PAGE_UNIT, start + 10);
    bytes.set(id, start + 12);
    bytes.set(payload, start + RECORD_HEAD_BYTES);
    bytes.writeUInt32LE((crc32(bytes.subarray(start + CHECKED_FROM, end)) ^ this.#segment) >>> 0, start + 4);
    this.#length = end;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** The records of a segment's bytes, and where the last whole one ends. */
export function readRecords(bytes: Buffer, segment: number): { records: JournalRecord[]; end: number } {
  const records: JournalRecord[] = [];
  // Segments used to have no number in them, and nothing else in their place.
  const number = endOfRecord(bytes, 0, 0) === null ? segment : 0;
  let at = 0;
  for (let end = endOfRecord(bytes, 0, number); end !== null; end = endOfRecord(bytes, at, number)) {
    records.push({
      kind: bytes[at + 8] as RecordKind,
      pageBytes: bytes.readUInt16LE(at + 10) * PAGE_UNIT,
      id: bytes.toString("hex", at + 12, at + RECORD_HEAD_BYTES),
      payload: bytes.subarray(at + RECORD_HEAD_BYTES, end),
    });
    at = end;
  }
  return { records, end: at };
}

/** Where the record ends that begins there; null if there is none. */
function endOfRecord(bytes: Buffer, at: number, segment: number): number | null {
  if (at + RECORD_HEAD_BYTES > bytes.length) return null;
  const end = at + RECORD_HEAD_BYTES + bytes.readUInt32LE(at);
  if (end > bytes.length) return null;
  const expected = (bytes.readUInt32LE(at + 4) ^ segment) >>> 0;
  return crc32(bytes.subarray(at + CHECKED_FROM, end)) === expected ? end : null;
}
