/**
 * The records of a segment.
 *
 *   length of the payload (4 bytes) · CRC-32 of all bytes after it, XOR the number of the segment (4) · kind (1) · reserved (1)
 *   · page size / 256 (2) · id of the instance (20) · payload
 *
 * The checksum includes the number because a segment may overwrite a former one, whose records are not valid in it.
 *
 * Integers are little endian; those inside frames are SQLite's. A segment ends at the first record that is incomplete or has a wrong checksum: the
 * process or the power failed during the write, and the record was not acknowledged.
 */
import { crc32 } from "node:zlib";
import { ID_BYTES } from "../instance-path.ts";

export const RECORD_KINDS = {
  /** Content of new databases. The id is that of the template; the default template has `NO_ID`. */
  template: 0,
  /** The payload is the id of a template earlier in the segment; no payload means the default template. */
  created: 1,
  /** Complete transactions as frames of SQLite's WAL: page number, size of the database after a commit, 16 more bytes, the page. */
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

/** The id of the default template. */
export const NO_ID: Buffer = Buffer.alloc(ID_BYTES);

/** Content of new databases. */
export interface Template {
  /** `NO_ID` for the default template, a hash of the bytes for any other. */
  readonly id: Buffer;
  readonly bytes: Uint8Array;
}

const RECORD_HEADER_BYTES = 32;
const CHECKSUM_START = 8;
const PAGE_UNIT = 256;

/** Records that are written together; the buffer grows as needed and is reused. */
export class RecordBuffer {
  #bytes: Buffer;
  #length = 0;
  /** The segment number in the checksums. */
  #segment = 0;

  constructor(capacity: number) {
    this.#bytes = Buffer.allocUnsafeSlow(capacity);
  }

  /** The bytes for the segment of this number, which is not known when records are added. */
  bytesFor(segment: number): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length);
    const change = this.#segment ^ segment;
    for (let at = 0; change !== 0 && at < bytes.length; at += RECORD_HEADER_BYTES + bytes.readUInt32LE(at))
      bytes.writeUInt32LE((bytes.readUInt32LE(at + 4) ^ change) >>> 0, at + 4);
    this.#segment = segment;
    return bytes;
  }

  /** Removes all records, and shrinks a buffer that is larger than `maxCapacity`. */
  clear(maxCapacity: number): void {
    this.#length = 0;
    this.#segment = 0;
    if (this.#bytes.length > maxCapacity) this.#bytes = Buffer.allocUnsafeSlow(maxCapacity);
  }

  add(kind: RecordKind, id: Uint8Array, pageBytes: number, payload: Uint8Array): void {
    const start = this.#length;
    const end = start + RECORD_HEADER_BYTES + payload.length;
    this.#reserve(end);
    const bytes = this.#bytes;
    bytes.writeUInt32LE(payload.length, start);
    bytes[start + 8] = kind;
    bytes[start + 9] = 0;
    bytes.writeUInt16LE(pageBytes / PAGE_UNIT, start + 10);
    bytes.set(id, start + 12);
    bytes.set(payload, start + RECORD_HEADER_BYTES);
    bytes.writeUInt32LE(
      (crc32(bytes.subarray(start + CHECKSUM_START, end)) ^ this.#segment) >>> 0,
      start + 4,
    );
    this.#length = end;
  }

  #reserve(length: number): void {
    if (length <= this.#bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(length, this.#bytes.length * 2));
    this.#bytes.copy(larger, 0, 0, this.#length);
    this.#bytes = larger;
  }
}

/** The records of a segment, and where the last complete one ends. */
export function readRecords(bytes: Buffer, segment: number): { records: JournalRecord[]; end: number } {
  const records: JournalRecord[] = [];
  let at = 0;
  for (let end = endOfRecord(bytes, 0, segment); end !== null; end = endOfRecord(bytes, at, segment)) {
    records.push({
      kind: bytes[at + 8] as RecordKind,
      pageBytes: bytes.readUInt16LE(at + 10) * PAGE_UNIT,
      id: bytes.toString("hex", at + 12, at + RECORD_HEADER_BYTES),
      payload: bytes.subarray(at + RECORD_HEADER_BYTES, end),
    });
    at = end;
  }
  return { records, end: at };
}

/** The end of the record that begins at `at`; null if no valid record begins there. */
function endOfRecord(bytes: Buffer, at: number, segment: number): number | null {
  if (at + RECORD_HEADER_BYTES > bytes.length) return null;
  const end = at + RECORD_HEADER_BYTES + bytes.readUInt32LE(at);
  if (end > bytes.length) return null;
  const expected = (bytes.readUInt32LE(at + 4) ^ segment) >>> 0;
  return crc32(bytes.subarray(at + CHECKSUM_START, end)) === expected ? end : null;
}
