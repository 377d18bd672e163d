/**
 * The tables of an instance's work: queue, dead letters, schedules. Most instances never use them, and SQLite parses the definition of every
 * table when it opens a database, so the tables are created with the first row.
 *
 * Invariants:
 * 1. Without the tables, reads return no rows.
 * 2. All three tables are created together, in the transaction of the first row; a rollback removes them.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { rawSql, sql, type SqlQuery } from "../../core/sql.ts";
import type { Participant, Transactions } from "../../engines/turn-runtime/index.ts";

/** `next_at` of an item of the queue that waits for no time. */
export const AT_ONCE = 0;

const DEFINITIONS = [
  // seq is the order of arrival, next_at the earliest time of the next attempt.
  rawSql(`CREATE TABLE _signalbox_queue (
    seq        INTEGER PRIMARY KEY AUTOINCREMENT,
    id         TEXT NOT NULL UNIQUE,
    callback   TEXT NOT NULL,
    payload    TEXT,
    retry      TEXT,
    attempts   INTEGER NOT NULL DEFAULT 0,
    next_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_error TEXT
  )`),
  rawSql(`CREATE TABLE _signalbox_dead_letter (
    id         TEXT PRIMARY KEY,
    item_id    TEXT NOT NULL,
    origin     TEXT NOT NULL,
    callback   TEXT NOT NULL,
    payload    TEXT,
    retry      TEXT,
    attempts   INTEGER NOT NULL,
    error      TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    failed_at  INTEGER NOT NULL
  ) WITHOUT ROWID`),
  // due is the requested time, next_at the time of the next attempt, spec the cron expression or the interval in milliseconds.
  rawSql(`CREATE TABLE _signalbox_schedule (
    id         TEXT PRIMARY KEY,
    type       TEXT NOT NULL,
    callback   TEXT NOT NULL,
    payload    TEXT,
    spec       TEXT,
    retry      TEXT,
    attempts   INTEGER NOT NULL DEFAULT 0,
    due        INTEGER NOT NULL,
    next_at    INTEGER NOT NULL,
    created_at INTEGER NOT NULL
  ) WITHOUT ROWID`),
];

export class WorkTables implements Participant {
  readonly #database: InstanceDatabase;
  readonly #transactions: Pick<Transactions, "open" | "join">;
  /** Null when the schema has to be read. */
  #exist: boolean | null;

  constructor(database: InstanceDatabase, transactions: Pick<Transactions, "open" | "join">) {
    this.#database = database;
    this.#transactions = transactions;
    this.#exist = database.isNew ? false : null;
    transactions.join(this);
  }

  all<Row>(query: SqlQuery): Row[] {
    return this.#haveBeenCreated() ? this.#database.all<Row>(query) : [];
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#haveBeenCreated() ? this.#database.get<Row>(query) : undefined;
  }

  /** Changes or deletes rows. */
  change(query: SqlQuery): { changes: number } {
    if (!this.#haveBeenCreated()) return { changes: 0 };
    this.#transactions.open();
    return this.#database.run(query);
  }

  /** Adds a row. */
  insert(query: SqlQuery): void {
    this.#transactions.open();
    if (!this.#haveBeenCreated()) {
      for (const definition of DEFINITIONS) this.#database.run(definition);
      this.#exist = true;
    }
    this.#database.run(query);
  }

  afterRollback(): void {
    // The rollback may have removed the tables.
    this.#exist = null;
  }

  #haveBeenCreated(): boolean {
    this.#exist ??=
      this.#database.get(sql`SELECT 1 AS found FROM sqlite_schema WHERE name = '_signalbox_queue'`) !==
      undefined;
    return this.#exist;
  }
}
