/**
 * A connection to an SQLite database; no other file opens one with `node:sqlite`.
 *
 * Compiled statements are cached per connection: compiling costs about four times as much as running a small query.
 */
import { backup, constants, DatabaseSync, type StatementSync } from "node:sqlite";
import type { SqlQuery, SqlValue } from "../../core/sql.ts";
import { PreparedStatement, StatementCache, textOf } from "./prepared-statement.ts";

/** More than the control plane has statements; instances have a few each. */
const STATEMENT_CACHE_SIZE = 256;

/** Pages that are copied by one step in the thread pool: 2 MiB with pages of 4 KiB. */
const COPY_PAGES = 512;

export interface SqliteConnectionOptions {
  readonly readOnly?: boolean;
  /** How long a statement waits for the lock of another connection, blocking its thread. Default 5000. */
  readonly busyTimeoutMs?: number;
  /** Takes an unknown name in double quotes for text, as SQLite does by default: for statements of programs that rely on it. Default false. */
  readonly takesQuotedText?: boolean;
  /** Maximum size of a text, a blob or a row. */
  readonly maxValueBytes?: number;
}

/** Called by SQLite for each action of a statement while it compiles the statement; `action` is one of `SQLITE_ACTIONS`. */
export type Authorizer = (
  action: number,
  first: string | null,
  second: string | null,
  /** `main` or `temp`, where the action concerns one of them. */
  database: string | null,
) => boolean;

/** SQLite's action codes (`SQLITE_INSERT`, …). */
export const SQLITE_ACTIONS = constants;

export class SqliteConnection {
  readonly #database: DatabaseSync;
  readonly #statements = new StatementCache<StatementSync>(STATEMENT_CACHE_SIZE);

  private constructor(database: DatabaseSync) {
    this.#database = database;
  }

  /** A URL may have SQLite's parameters, for example `immutable`. */
  static open(path: string | URL, options: SqliteConnectionOptions = {}): SqliteConnection {
    const database = new DatabaseSync(path, {
      readOnly: options.readOnly ?? false,
      timeout: options.busyTimeoutMs ?? 5000,
      enableForeignKeyConstraints: true,
      enableDoubleQuotedStringLiterals: options.takesQuotedText ?? false,
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

  /** A statement fails to compile if `authorize` returns false for one of its actions. */
  setAuthorizer(authorize: Authorizer): void {
    this.#database.setAuthorizer((action, first, second, database) =>
      authorize(action, first, second, database) ? constants.SQLITE_OK : constants.SQLITE_DENY,
    );
  }

  /** Integers are given as bigint. Triggers, views and defaults cannot use the function. */
  addFunction(name: string, work: (...values: bigint[]) => number | bigint): void {
    const options = { directOnly: true, useBigIntArguments: true, varargs: true };
    this.#database.function(name, options, work as unknown as (...values: SqlValue[]) => SqlValue);
  }

  /** Compiles the first statement of the text; not cached. */
  prepare(text: string): PreparedStatement {
    return new PreparedStatement(this.#database.prepare(text));
  }

  /** Compiles a statement that runs for many rows; not cached. The function returns the number of changed rows. */
  prepareRun(text: string): (...values: SqlValue[]) => number {
    const statement = this.#database.prepare(text);
    return (...values) => Number(statement.run(...values).changes);
  }

  /** The content as the bytes of a database file. */
  serialize(): Uint8Array {
    return this.#database.serialize();
  }

  /**
   * Copies the database to a new file without blocking the event loop. The caller has begun a transaction and read in it: then the copy has
   * the content as of that read, and writers of other connections neither wait nor make the copy begin again.
   */
  async copyTo(path: string): Promise<void> {
    await backup(this.#database, path, { rate: COPY_PAGES });
  }

  /** Replaces the content by the bytes of a database file. */
  deserialize(bytes: Uint8Array): void {
    this.#database.deserialize(bytes);
  }

  get isInTransaction(): boolean {
    return this.#database.isTransaction;
  }

  /** Does nothing if SQLite has ended the transaction itself, as it does after some errors (disk full, I/O). */
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
