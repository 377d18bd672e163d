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
import { syncFolder, writeWhole } from "../../durable-file/index.ts";
import {
  type JournalRecord,
  readRecords,
  RECORD_KINDS,
  RecordBuffer,
  type Template,
} from "./journal-records.ts";

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
