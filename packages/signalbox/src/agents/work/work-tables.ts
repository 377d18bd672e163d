/**
 * The tables of an instance's own work: queue, dead letters, schedules. Most instances never have any, and SQLite reads the definition of every
 * table each time it opens a database, so they are created with the first row.
 *
 * Invariants:
 * 1. Whoever reads finds no rows where there are no tables.
 * 2. All three are created together, in the transaction of the first row; if that is rolled back, they are gone as well.
 */
import type { InstanceDatabase } from "../../engines/instance-store/index.ts";
import { rawSql, sql, type SqlQuery } from "../../core/sql.ts";
import type { Participant, Transactions } from "../../engines/turn-runtime/index.ts";

const DEFINITIONS = [
  // seq is the order of arrival; next_at the earliest time of the next attempt.
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
  // due is the time asked for, next_at the time of the next attempt; spec is the cron text or the interval in milliseconds.
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
  readonly #transactions: Transactions;
  /** Null when only a look can tell. */
  #exist: boolean | null;

  constructor(database: InstanceDatabase, transactions: Transactions) {
    this.#database = database;
    this.#transactions = transactions;
    this.#exist = database.isNew ? false : null;
    transactions.join(this);
  }

  all<Row>(query: SqlQuery): Row[] {
    return this.#areThere() ? this.#database.all<Row>(query) : [];
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#areThere() ? this.#database.get<Row>(query) : undefined;
  }

  /** Changes or deletes rows, in the transaction that is open or a new one. */
  change(query: SqlQuery): { changes: number } {
    if (!this.#areThere()) return { changes: 0 };
    this.#transactions.open();
    return this.#database.run(query);
  }

  /** Adds a row, likewise. */
  insert(query: SqlQuery): void {
    this.#transactions.open();
    if (!this.#areThere()) {
      for (const definition of DEFINITIONS) this.#database.run(definition);
      this.#exist = true;
    }
    this.#database.run(query);
  }

  afterRollback(): void {
    // What was rolled back may have been their creation.
    this.#exist = null;
  }

  #areThere(): boolean {
    this.#exist ??=
      this.#database.get(sql`SELECT 1 AS found FROM sqlite_schema WHERE name = '_signalbox_queue'`) !==
      undefined;
    return this.#exist;
  }
}
