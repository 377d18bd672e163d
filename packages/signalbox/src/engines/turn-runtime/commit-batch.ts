/**
 * The SQLite transaction that consecutive segments share. The first segment of a batch is the transaction itself, each later one is a
 * savepoint in it. Most of the cost of a small commit is writing the same few pages to the WAL again, and no output leaves before the sync,
 * so the difference cannot be observed.
 *
 * The class only executes statements, and throws what SQLite throws. `Transactions` decides when a batch is committed and what a failure means.
 */
import { rawSql, sql } from "../../core/sql.ts";
import type { TurnDatabase } from "./turn-database.ts";

const SAVEPOINT = rawSql("SAVEPOINT segment");
const RELEASE = rawSql("RELEASE segment");
const ROLLBACK_TO = rawSql("ROLLBACK TO segment");
const DEFERRABLE = sql`SELECT 1 AS found FROM sqlite_schema WHERE sql LIKE '%deferrable%' LIMIT 1`;

/** Sixteen segments save nearly all page writes that can be saved, and their pages still fit in the connection's cache. */
const MAX_SEGMENTS = 16;

export class CommitBatch {
  readonly #database: TurnDatabase;
  /** Segments that SQLite has not committed, the open one included. */
  #size = 0;
  #commits = 0;
  /** The database's `tableChanges` when `#hasDeferrable` was read. */
  #tableChanges = -1;
  #hasDeferrable = false;

  constructor(database: TurnDatabase) {
    this.#database = database;
  }

  get size(): number {
    return this.#size;
  }

  /** Batches that SQLite has committed. */
  get commits(): number {
    return this.#commits;
  }

  /** True when the batch must be committed before another segment begins. */
  get isFull(): boolean {
    return this.#size >= MAX_SEGMENTS || (this.#size > 0 && this.#checksAtCommit());
  }

  beginSegment(): void {
    if (this.#size === 0) this.#database.begin();
    else this.#database.run(SAVEPOINT);
    this.#size += 1;
  }

  /** Ends the open segment successfully. A segment whose constraints are checked at commit is committed at once, so that it fails alone. */
  endSegment(): void {
    if (this.#hasDeferrable) this.commit();
    else if (this.#size > 1) this.#database.run(RELEASE);
  }

  rollbackSegment(): void {
    if (this.#size > 1) {
      this.#database.run(ROLLBACK_TO);
      this.#database.run(RELEASE);
    } else this.#database.rollback();
    this.#size -= 1;
  }

  commit(): void {
    if (this.#size === 0) return;
    this.#database.commit();
    this.#size = 0;
    this.#commits += 1;
  }

  /** Rolls back every segment of the batch. */
  discard(): void {
    this.#size = 0;
    this.#database.rollback();
  }

  /** True when the schema has constraints that SQLite checks only at commit: then a segment can fail the commit of its batch. */
  #checksAtCommit(): boolean {
    const { tableChanges } = this.#database;
    if (tableChanges !== this.#tableChanges) {
      this.#tableChanges = tableChanges;
      this.#hasDeferrable = this.#database.get(DEFERRABLE) !== undefined;
    }
    return this.#hasDeferrable;
  }
}
