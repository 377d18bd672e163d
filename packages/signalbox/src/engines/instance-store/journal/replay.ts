/**
 * Replays the journal of a process that crashed: writes the pages in the journal into the files of the instances, in order.
 *
 * The result is a complete file, whatever the disk kept: the file on disk is in the state of its last checkpoint, plus any part of the pages written
 * since. All those pages are in the journal (`journal.ts`, invariant 2), so that the last version of each page and the last size restore the file.
 * A second replay changes nothing.
 *
 * A record of an unknown kind, or one that refers to a template that the segment does not contain, is damage.
 */
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { writeWhole } from "../../durable-file/index.ts";
import { type JournalRecord, NO_ID, RECORD_KINDS } from "./journal-records.ts";
import { eachPage } from "../wal/wal-reader.ts";

/** The changes of one segment to the file of one instance. */
interface Redo {
  /** The content that the pages are written over; null for the existing file. */
  readonly template: Buffer | null;
  readonly isDestroyed: boolean;
  readonly pages: Map<number, Buffer>;
  pageBytes: number;
  databasePages: number;
}

const DEFAULT_TEMPLATE = NO_ID.toString("hex");

export class Replay {
  readonly #pathOf: (id: string) => string;
  readonly #replayed = new Set<string>();
  /** Created, without a commit so far. */
  readonly #uncommitted = new Set<string>();

  constructor(pathOf: (id: string) => string) {
    this.#pathOf = pathOf;
  }

  /** Takes one segment at a time, so that at most one is in memory. Does not sync. */
  addSegment(path: string, records: readonly JournalRecord[]): void {
    const instances = new Map<string, Redo>();
    const templates = new Map<string, Buffer>();
    for (const record of records) {
      const { kind, id, payload } = record;
      switch (kind) {
        case RECORD_KINDS.template:
          templates.set(id, payload);
          break;
        case RECORD_KINDS.created: {
          const name = payload.length === 0 ? DEFAULT_TEMPLATE : payload.toString("hex");
          const template = templates.get(name);
          if (template === undefined)
            throw new Error(`${path} is damaged: it lacks the template ${name} of the instance ${id}`);
          instances.set(id, newRedo(template, false));
          this.#uncommitted.add(id);
          break;
        }
        case RECORD_KINDS.frames:
          this.#addFrames(instances, record);
          break;
        case RECORD_KINDS.destroyed:
          instances.set(id, newRedo(null, true));
          this.#uncommitted.delete(id);
          break;
        default:
          throw new Error(`${path} is damaged: it contains a record of the unknown kind ${String(kind)}`);
      }
    }
    for (const [id, redo] of instances) {
      this.#replayed.add(id);
      apply(this.#pathOf(id), redo);
    }
  }

  /** Returns the instances whose files were written or removed. */
  finish(): ReadonlySet<string> {
    // An instance without a commit was never acknowledged.
    for (const id of this.#uncommitted) remove(this.#pathOf(id));
    return this.#replayed;
  }

  #addFrames(instances: Map<string, Redo>, { id, payload, pageBytes }: JournalRecord): void {
    let redo = instances.get(id);
    if (redo === undefined) {
      redo = newRedo(null, false);
      instances.set(id, redo);
    }
    const { pages } = redo;
    redo.pageBytes = pageBytes;
    redo.databasePages = eachPage(payload, pageBytes, (page, content) => pages.set(page, content));
    this.#uncommitted.delete(id);
  }
}

function newRedo(template: Buffer | null, isDestroyed: boolean): Redo {
  return { template, isDestroyed, pages: new Map(), pageBytes: 0, databasePages: 0 };
}

function apply(path: string, redo: Redo): void {
  if (redo.isDestroyed) remove(path);
  // A missing file was removed by hand, or destroyed by a record of a segment that no longer exists.
  else if (redo.template !== null || existsSync(path)) write(path, redo);
}

function remove(path: string): void {
  rmSync(path, { force: true });
}

function write(path: string, { template, pages, pageBytes, databasePages }: Redo): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const file = openSync(path, template === null ? "r+" : "w", 0o600);
  try {
    if (template !== null) writeWhole(file, template, 0);
    for (const [page, content] of pages) {
      if (page <= databasePages) writeWhole(file, content.subarray(0, pageBytes), (page - 1) * pageBytes);
    }
    if (databasePages > 0) ftruncateSync(file, databasePages * pageBytes);
  } finally {
    closeSync(file);
  }
}
