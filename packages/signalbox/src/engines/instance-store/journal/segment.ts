/**
 * The files the journal consists of: `<number>.log`. Each has the templates that instances created in it start as: the default one to begin with,
 * any other before the first record that needs it.
 *
 * Records are written over bytes that the file has already: those of a former segment whose file is used again, else zeros laid out ahead. A file
 * system then has only data to sync. For a file that grows it must write down its new size, too, which on the usual ones takes several times as long.
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
import { isFullDisk, syncFolder } from "../../sqlite-file/index.ts";
import { type JournalRecord, RECORD_KINDS, RecordBuffer, readRecords, type Template } from "./record.ts";
import { writeWhole } from "./write-whole.ts";

const NAME = /^(\d+)\.log$/;
/** A file that is laid out ahead doubles, within these bounds: an idle server's stays small, a busy one is not held up for long. */
const MIN_AHEAD_BYTES = 64 * 1024;
const MAX_AHEAD_BYTES = 1024 * 1024;
const ZEROS = Buffer.alloc(MAX_AHEAD_BYTES);

export interface SegmentOptions {
  readonly folder: string;
  readonly number: number;
  /** What instances are created as by default. */
  readonly template: Template;
  /** The size it is meant to have in the end. */
  readonly bytes: number;
  /** A file of the same folder that may be written over; null for none. */
  readonly spare: string | null;
}

/** A segment that records are appended to. */
export class Segment {
  readonly path: string;
  readonly fd: number;
  /** Ids of the instances that have records here. */
  readonly touched = new Set<string>();
  isNameSynced = false;
  readonly #number: number;
  readonly #plannedBytes: number;
  readonly #templates = new Set<Template>();
  #length = 0;
  /** Bytes that the file has, records or not. */
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
    const fd = spare === null ? openSync(path, "w", 0o600) : takeOver(spare, path);
    const segment = new Segment(path, fd, options);
    try {
      segment.provide(template);
    } catch (error) {
      // Half a segment that is followed by another would be taken for damage.
      closeSync(segment.fd);
      rmSync(path, { force: true });
      throw error;
    }
    return segment;
  }

  get length(): number {
    return this.#length;
  }

  /** Appends the template unless it is here already. */
  provide(template: Template): void {
    if (this.#templates.has(template)) return;
    const records = new RecordBuffer(template.bytes.length + 64);
    records.add(RECORD_KINDS.template, template.id, 0, template.bytes);
    this.append(records);
    this.#templates.add(template);
  }

  /** Throws with nothing appended, as far as later appends and readers are concerned, when the disk does not take all of it. */
  append(records: RecordBuffer): void {
    const bytes = records.bytesFor(this.#number);
    writeWhole(this.fd, bytes, this.#length);
    this.#length += bytes.length;
    if (this.#length > this.#fileBytes) this.#layOut();
  }

  /** Everything in it is synced. What follows its last record must be gone before there is a newer one: it would be taken for damage. */
  end(): void {
    if (this.#fileBytes > this.#length) {
      ftruncateSync(this.fd, this.#length);
      fdatasyncSync(this.fd);
    }
    closeSync(this.fd);
  }

  #layOut(): void {
    const ahead = Math.min(Math.max(this.#length, MIN_AHEAD_BYTES), MAX_AHEAD_BYTES);
    const end = Math.min(this.#length + ahead, this.#plannedBytes);
    this.#fileBytes = Math.max(end, this.#length);
    if (end <= this.#length) return;
    try {
      writeWhole(this.fd, ZEROS.subarray(0, end - this.#length), this.#length);
    } catch (error) {
      // The records are there, which is what counts.
      if (!isFullDisk(error)) throw error;
    }
  }
}

/** Opened before it is renamed: a segment that exists, but could not be opened, would be taken for damage. */
function takeOver(spare: string, path: string): number {
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

/** The segments of an earlier process, oldest first. */
export function findSegments(folder: string): FoundSegment[] {
  return readdirSync(folder)
    .filter((name) => NAME.test(name))
    .map((name) => ({ number: Number(NAME.exec(name)?.[1]), path: join(folder, name) }))
    .toSorted((a, b) => a.number - b.number);
}

/**
 * All whole records. In the newest segment, what follows the last one is cut off for good, and the rest is synced: a process that was killed may not
 * have got that far, and from now on everybody is told of it. In any other, something that follows is damage.
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
