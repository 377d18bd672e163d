/**
 * The files of the journal: `<number>.log`. A segment contains the templates of the instances created in it: first the default template, then each
 * other template before the first record that refers to it.
 *
 * Records overwrite bytes that are already allocated: those of a former segment whose file is reused, otherwise zeros written ahead. Then a sync writes
 * data only. The sync of a file that has grown also writes its size, which takes several times as long on common file systems.
 * See ../README.md.
 */
import {
  closeSync,
  fdatasyncSync,
  fstatSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { isFullDisk } from "../../sqlite-file/index.ts";
import { crc32 } from "node:zlib";
import { syncFolder, writeWhole } from "../../durable-file/index.ts";
import { ID_BYTES } from "../instance-path.ts";

const NAME = /^(\d+)\.log$/;
/** Zeros double the file, within these bounds: the file of an idle server stays small, and a busy server is blocked only briefly. */
const MIN_AHEAD_BYTES = 64 * 1024;
const MAX_AHEAD_BYTES = 1024 * 1024;
const ZEROS = Buffer.alloc(MAX_AHEAD_BYTES);

export interface SegmentOptions {
  readonly folder: string;
  readonly number: number;
  /** The default template. */
  readonly template: Template;
  /** The planned size. */
  readonly bytes: number;
  /** A file of the same folder that may be overwritten; null for none. */
  readonly spare: string | null;
}

/** A segment that records are appended to. */
export class Segment {
  readonly path: string;
  readonly fd: number;
  /** Instances that have records in the segment. */
  readonly ids = new Set<string>();
  isNameDurable = false;
  readonly #number: number;
  readonly #plannedBytes: number;
  readonly #templates = new Set<Template>();
  #length = 0;
  /** Size of the file, including bytes after the last record. */
  #fileBytes: number;

  private constructor(path: string, fd: number, { number, bytes }: SegmentOptions) {
    this.path = path;
    this.fd = fd;
    this.#number = number;
    this.#plannedBytes = bytes;
    this.#fileBytes = fstatSync(fd).size;
  }

  static create(options: SegmentOptions): Segment {
    const { folder, number, template, spare } = options;
    const path = join(folder, `${String(number).padStart(10, "0")}.log`);
    const fd = spare === null ? openSync(path, "w", 0o600) : reuse(spare, path);
    const segment = new Segment(path, fd, options);
    try {
      segment.addTemplate(template);
    } catch (error) {
      // An incomplete segment before another one would count as damaged.
      closeSync(segment.fd);
      rmSync(path, { force: true });
      throw error;
    }
    return segment;
  }

  get length(): number {
    return this.#length;
  }

  /** Appends the template unless the segment contains it. */
  addTemplate(template: Template): void {
    if (this.#templates.has(template)) return;
    const records = new RecordBuffer(template.bytes.length + 64);
    records.add(RECORD_KINDS.template, template.id, 0, template.bytes);
    this.append(records);
    this.#templates.add(template);
  }

  /** If the disk is full and the write throws, later appends overwrite the partial record. */
  append(records: RecordBuffer): void {
    const bytes = records.bytesFor(this.#number);
    writeWhole(this.fd, bytes, this.#length);
    this.#length += bytes.length;
    if (this.#length > this.#fileBytes) this.#writeAhead();
  }

  /** All records are synced. Bytes after the last record are removed before a newer segment exists: they would count as damage. */
  end(): void {
    if (this.#fileBytes > this.#length) {
      ftruncateSync(this.fd, this.#length);
      fdatasyncSync(this.fd);
    }
    closeSync(this.fd);
  }

  #writeAhead(): void {
    const ahead = Math.min(Math.max(this.#length, MIN_AHEAD_BYTES), MAX_AHEAD_BYTES);
    const end = Math.min(this.#length + ahead, this.#plannedBytes);
    this.#fileBytes = Math.max(end, this.#length);
    if (end <= this.#length) return;
    try {
      writeWhole(this.fd, ZEROS.subarray(0, end - this.#length), this.#length);
    } catch (error) {
      // The records are written; the zeros only make later syncs faster.
      if (!isFullDisk(error)) throw error;
    }
  }
}

/** Opens the file before it is renamed: a segment that cannot be opened would count as damaged. */
function reuse(spare: string, path: string): number {
  const fd = openSync(spare, "r+");
  try {
    renameSync(spare, path);
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  return fd;
}

export interface FoundSegment {
  readonly number: number;
  readonly path: string;
}

/** Segments of an earlier process, oldest first. */
export function findSegments(folder: string): FoundSegment[] {
  return readdirSync(folder)
    .filter((name) => NAME.test(name))
    .map((name) => ({ number: Number(NAME.exec(name)?.[1]), path: join(folder, name) }))
    .toSorted((a, b) => a.number - b.number);
}

/**
 * Returns all complete records. In the newest segment, bytes after the last record are removed and the records are synced: the killed process may not
 * have synced them, and from now on instances act on them. In any other segment, bytes after the last record are damage.
 */
export function readSegment({ path, number }: FoundSegment, isNewest: boolean): JournalRecord[] {
  const bytes = readFileSync(path);
  const { records, end } = readRecords(bytes, number);
  if (isNewest) syncUpTo(path, end);
  else if (end < bytes.length) throw new Error(`${path} is damaged after ${end} of ${bytes.length} bytes`);
  return records;
}

function syncUpTo(path: string, length: number): void {
  const file = openSync(path, "r+");
  try {
    ftruncateSync(file, length);
    fdatasyncSync(file);
  } finally {
    closeSync(file);
  }
  syncFolder(dirname(path));
}

/*
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
  // Earlier versions wrote checksums without the number.
  const number = endOfRecord(bytes, 0, 0) === null ? segment : 0;
  let at = 0;
  for (let end = endOfRecord(bytes, 0, number); end !== null; end = endOfRecord(bytes, at, number)) {
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
