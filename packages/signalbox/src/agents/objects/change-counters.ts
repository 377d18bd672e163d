/**
 * What `changes()`, `total_changes()` and `last_insert_rowid()` tell a program. SQLite counts for a connection, on which the runtime writes, too: the identity of an object, its name, its
 * facets. So a statement that reads a counter passes it through a function, which answers what the program's own writes come to. Key-value storage and the alarm count, as on the
 * originals.
 *
 * Invariants:
 * 1. The counters begin at zero when the object is loaded, and again after `deleteAll`, which gives an object of the originals a new database.
 * 2. A write costs two assignments for them; the functions exist in databases whose program reads a counter.
 * 3. Agents of Signalbox write with `this.sql`, too, so that the counters of their `ctx.storage.sql` are SQLite's own.
 * 4. Triggers and views keep SQLite's own functions: inside of a trigger they are about the trigger.
 */
import { rawSql } from "../../core/sql.ts";
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { replaceOutsideOfTokens } from "./sql-tokens.ts";

const COUNTER = /\b(total_changes|changes|last_insert_rowid)\s*\(\s*\)/gi;
const DEFINES = /^[\s;]*(?:create|alter)\b/i;
/** A call around a counter, in the name of a column that has no other. */
const AROUND = /_signalbox_[a-z_]+\(([a-z_]+\s*\(\s*\)), total_changes\(\)\)/gi;
const READ = rawSql("SELECT changes() AS changed, total_changes() AS total, last_insert_rowid() AS last");

interface Read {
  readonly changed: number | bigint;
  readonly total: number | bigint;
  readonly last: number | bigint;
}

/** The statement with each counter inside of its function. Statements without one are returned as they are. */
export function wrapCounters(statement: string): string {
  if (DEFINES.test(statement)) return statement;
  return replaceOutsideOfTokens(statement, (part) =>
    part.replaceAll(
      COUNTER,
      (found, name: string) => `_signalbox_${name.toLowerCase()}(${found}, total_changes())`,
    ),
  );
}

/** The name that the column of the program's own statement would have. */
export function unwrapCounters(column: string): string {
  return column.replaceAll(AROUND, "$1");
}

export class ChangeCounters {
  readonly #database: InstanceDatabase;
  readonly #areOf: "program" | "connection";
  #isDefined = false;
  #changed = 0;
  /** Before the first row is inserted, SQLite has the number of another one. */
  #hasInserted = false;
  /** Rows that statements of the runtime have changed for the program. */
  #ownRows = 0;
  /** What had been counted when everything was deleted. */
  #base = 0;
  /** While a text of several statements runs, which read what those before them have done. */
  #before: Read | null = null;

  constructor(database: InstanceDatabase, areOf: "program" | "connection" = "program") {
    this.#database = database;
    this.#areOf = areOf;
  }

  /** A statement of the program has changed rows. */
  wrote(changes: number, inserts: boolean): void {
    this.#changed = changes;
    if (inserts && changes > 0) this.#hasInserted = true;
  }

  /** A statement of the runtime has changed rows on behalf of the program. */
  wroteOwn(changes: number): void {
    this.#changed = changes;
    this.#ownRows += changes;
  }

  /** A statement of the program has failed while it ran. */
  failed(): void {
    this.#changed = Number(this.#read().changed);
  }

  /** Runs a text of several statements. */
  script<T>(work: () => T): T {
    const before = (this.#before = this.#read());
    try {
      return work();
    } finally {
      this.#before = null;
      const after = this.#read();
      if (after.total !== before.total) this.wrote(Number(after.changed), after.last !== before.last);
    }
  }

  /** Everything was deleted. */
  reset(): void {
    this.#changed = 0;
    this.#hasInserted = false;
    this.#base += this.#shownTotal(this.#read().total);
  }

  /** Before a statement that reads counters. */
  define(): void {
    if (this.#isDefined) return;
    this.#isDefined = true;
    const functions = {
      changes: (changed: bigint, total: bigint) => (this.#isOlder(total) ? this.#changed : changed),
      total_changes: (total: bigint) => this.#shownTotal(total),
      last_insert_rowid: (last: bigint, total: bigint) =>
        this.#isOlder(total) && !this.#hasInserted ? 0 : last,
    };
    for (const [name, counter] of Object.entries(functions))
      this.#database.addFunction(`_signalbox_${name}`, counter);
  }

  /** True if what `wrote` has been told is the last that the program has done. */
  #isOlder(total: bigint): boolean {
    if (this.#areOf === "connection") return false;
    return this.#before === null || BigInt(this.#before.total) === total;
  }

  #shownTotal(total: number | bigint): number {
    if (this.#areOf === "connection") return Number(total);
    return Number(total) - this.#database.ownChanges + this.#ownRows - this.#base;
  }

  #read(): Read {
    return this.#database.get<Read>(READ) ?? { changed: 0, total: 0, last: 0 };
  }
}
