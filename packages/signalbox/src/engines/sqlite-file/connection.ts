/**
 * The only file that knows the SQLite binding. Everything above it sees `open`, `exec`, `prepare` and `close`.
 *
 * Prepared statements are cached per connection (an uncached prepare costs about four times the query) and evicted oldest first.
 */
import { constants, DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlQuery, SqlValue } from "../../core/sql.ts";
import { PreparedStatement } from "./prepared-statement.ts";
import { StatementCache, textOf } from "./statement-cache.ts";

/** Enough for every call site of the control plane; agents run a handful of statements each. */
const STATEMENT_CACHE_SIZE = 256;

export interface SqliteConnectionOptions {
  readonly readOnly?: boolean;
  /** How long a statement waits for another connection's lock, holding up its thread. Default 5000. */
  readonly busyTimeoutMs?: number;
  /** Bytes that a text, a blob or a row may have. */
  readonly maxValueBytes?: number;
}

/** One thing a statement would do, as SQLite tells it while compiling; `action` is one of `SQLITE_ACTIONS`. */
export type Authorizer = (action: number, first: string | null, second: string | null) => boolean;

/** SQLite's codes of what a statement does (`SQLITE_INSERT`, …). */
export const SQLITE_ACTIONS = constants;

export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new StatementCache<StatementSync>(STATEMENT_CACHE_SIZE);

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** A URL may carry SQLite's own parameters, e.g. `immutable`. */
  static open(path: string | URL, options: SqliteConnectionOptions = {}): SqliteConnection {
    const database = new DatabaseSync(path, {
      readOnly: options.readOnly ?? false,
      timeout: options.busyTimeoutMs ?? 5000,
      enableForeignKeyConstraints: true,
      ...(options.maxValueBytes === undefined ? {} : { limits: { length: options.maxValueBytes } }),
    });
    return new SqliteConnection(database);
  }

  setBusyTimeout(ms: number): void {
    this.#database.exec(`PRAGMA busy_timeout = ${Math.trunc(ms)}`);
  }

  exec(text: string): void {
    this.#database.exec(text);
  }

  all<Row>(query: SqlQuery): Row[] {
    return this.#statement(query).all(...(query.values as SqlValue[])) as Row[];
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.#statement(query).get(...(query.values as SqlValue[])) as Row | undefined;
  }

  run(query: SqlQuery): { changes: number } {
    return { changes: Number(this.#statement(query).run(...(query.values as SqlValue[])).changes) };
  }

  /** Asked for every action of every statement that is compiled; false refuses the statement. */
  setAuthorizer(authorize: Authorizer): void {
    this.#database.setAuthorizer((action, first, second) =>
      authorize(action, first, second) ? constants.SQLITE_OK : constants.SQLITE_DENY,
    );
  }

  /** Compiles the first statement of a text, uncached. */
  prepare(text: string): PreparedStatement {
    return new PreparedStatement(this.#database.prepare(text));
  }

  /** Compiles a statement that is run for many rows, uncached; the function returns how many rows it changed. */
  prepareRun(text: string): (...values: SqlValue[]) => number {
    const statement = this.#database.prepare(text);
    return (...values) => Number(statement.run(...values).changes);
  }

  /** The whole database as a file's bytes. */
  serialize(): Uint8Array {
    return this.#database.serialize();
  }

  /** Replaces the content by a serialised database. */
  deserialize(bytes: Uint8Array): void {
    this.#database.deserialize(bytes);
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Ends a failed transaction; SQLite has already ended it by itself after some errors (disk full, I/O). */
  rollback(): void {
    if (this.isInTransaction) this.#database.exec("ROLLBACK");
  }

  close(): void {
    this.#statements.clear();
    if (this.#database.isOpen) this.#database.close();
  }

  #statement({ parts }: SqlQuery): StatementSync {
    const known = this.#statements.get(parts);
    if (known !== undefined) return known;
    const statement = this.#database.prepare(textOf(parts));
    this.#statements.set(parts, statement);
    return statement;
  }
}
