/**
 * Brings instances' files up to what the journal says, after a process ended without doing so: writes the journalled pages into them, in order.
 *
 * Why that is enough: a file on the disk holds its state as of some moment after which the journal has everything (see `journal.ts`, invariant 2),
 * plus any part of what was written since. Every page written since is in the journal, so the last version of each of them, and the last
 * size, make the file whole, whatever the disk kept. Doing it twice changes nothing.
 *
 * What a record means is never guessed: one of an unknown kind, or that names a template which the segment does not have, is damage.
 */
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { NO_ID, RECORD_KINDS, type JournalRecord } from "./record.ts";
import { eachPage } from "./wal-reader.ts";
import { writeWhole } from "./write-whole.ts";

/** What the records of one segment make of one instance's file. */
interface Redo {
  /** What the file starts from: these bytes, or, if null, the file as it is. */
  readonly template: Buffer | null;
  readonly isDestroyed: boolean;
  readonly pages: Map<number, Buffer>;
  pageBytes: number;
  databasePages: number;
}

const DEFAULT_TEMPLATE = NO_ID.toString("hex");

export class Replay {
  readonly #pathOf: (id: string) => string;
  readonly #touched = new Set<string>();
  /** Created, but without a commit so far. */
  readonly #unheardOf = new Set<string>();

  constructor(pathOf: (id: string) => string) {
    this.#pathOf = pathOf;
  }

  /** Segment by segment, so that no more than one is held in memory. Nothing is synced. */
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
            throw new Error(
              `${path} is damaged: the instance ${id} starts as ${name}, which it does not have`,
            );
          instances.set(id, newRedo(template, false));
          this.#unheardOf.add(id);
          break;
        }
        case RECORD_KINDS.frames:
          this.#addFrames(instances, record);
          break;
        case RECORD_KINDS.destroyed:
          instances.set(id, newRedo(null, true));
          this.#unheardOf.delete(id);
          break;
        default:
          throw new Error(`${path} is damaged: it has a record of the unknown kind ${String(kind)}`);
      }
    }
    for (const [id, redo] of instances) {
      this.#touched.add(id);
      apply(this.#pathOf(id), redo);
    }
  }

  /** Returns the ids of all instances whose files were written or removed. */
  finish(): ReadonlySet<string> {
    // An instance that never committed anything has told nobody that it exists.
    for (const id of this.#unheardOf) remove(this.#pathOf(id));
    return this.#touched;
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
    this.#unheardOf.delete(id);
  }
}

function newRedo(template: Buffer | null, isDestroyed: boolean): Redo {
  return { template, isDestroyed, pages: new Map(), pageBytes: 0, databasePages: 0 };
}

function apply(path: string, redo: Redo): void {
  if (redo.isDestroyed) remove(path);
  // A file that is gone was removed by hand, or destroyed by a record that a settled segment took with it.
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
