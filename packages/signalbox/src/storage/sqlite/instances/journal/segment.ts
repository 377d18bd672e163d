/**
 * The files the journal consists of: `<number>.log`. Each has the templates that instances created in it start as: the default one to begin with,
 * any other before the first record that needs it.
 */
import {
  closeSync,
  fdatasyncSync,
  ftruncateSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { syncFolder } from "../../sync-folder.ts";
import { type JournalRecord, RECORD_KINDS, RecordBuffer, readRecords, type Template } from "./record.ts";

const NAME = /^(\d+)\.log$/;

/** A segment that records are appended to. */
export class Segment {
  readonly path: string;
  readonly fd: number;
  /** Ids of the instances that have records here. */
  readonly touched = new Set<string>();
  isNameSynced = false;
  readonly #templates = new Set<Template>();
  #length = 0;

  private constructor(path: string, fd: number) {
    this.path = path;
    this.fd = fd;
  }

  static create(folder: string, number: number, template: Template): Segment {
    const path = join(folder, `${String(number).padStart(10, "0")}.log`);
    const segment = new Segment(path, openSync(path, "w", 0o600));
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
    this.append(records.bytes);
    this.#templates.add(template);
  }

  /** Throws with nothing appended, as far as later appends and readers are concerned, when the disk does not take all of it. */
  append(bytes: Buffer): void {
    let written = 0;
    while (written < bytes.length) {
      written += writeSync(this.fd, bytes, written, bytes.length - written, this.#length + written);
    }
    this.#length += bytes.length;
  }

  close(): void {
    closeSync(this.fd);
  }
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
export function readSegment({ path }: FoundSegment, isNewest: boolean): JournalRecord[] {
  const bytes = readFileSync(path);
  const { records, end } = readRecords(bytes);
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
