/**
 * What the databases of both engines have in common: an SQLite connection with trusted statements, guarded statements and transactions. The engines
 * add `flush`, `sync` and `close`.
 *
 * Invariants:
 * 1. Guarded statements compile and run under the guard; trusted statements do not.
 * 2. When SQLite has rolled back the transaction by itself, as it does on a full disk, every later statement of that transaction and its end fail with
 *    the error that was the reason. They would run outside of a transaction otherwise, and fail with errors that tell nothing.
 * See README.md.
 */
import { rawSql, type SqlQuery, type SqlValue } from "../../core/sql.ts";
import {
  type PreparedStatement,
  type RawRows,
  type SqliteConnection,
  StatementCache,
  textOf,
} from "../sqlite-file/index.ts";
import type { DiskRoom } from "./disk-room.ts";
import { type GuardedStatement, type InstanceDatabase, SqlError } from "./instance-store.ts";
import type { ReservedNames } from "./reserved-names.ts";
import { type Compiled, hasStatement, StatementGuard } from "./statement-guard.ts";

const BEGIN = rawSql("BEGIN IMMEDIATE");
const COMMIT = rawSql("COMMIT");

const CHANGES_ROWS = /^\s*(?:insert|update|delete)\b/i;

/** Compiled guarded statements of one database; more than one class of instances usually has. */
const STATEMENT_CACHE_SIZE = 64;

export abstract class GuardedDatabase implements InstanceDatabase {
  readonly isNew: boolean;
  protected readonly connection: SqliteConnection;
  protected readonly room: DiskRoom;
  readonly #guard: StatementGuard;
  readonly #statements = new StatementCache<GuardedStatement>(STATEMENT_CACHE_SIZE);
  #tableChanges = 0;
  #ownChanges = 0;
  #isInTransaction = false;
  /** Why SQLite has ended the transaction; null if it has not. */
  #lost: { readonly reason: unknown } | null = null;

  constructor(connection: SqliteConnection, isNew: boolean, room: DiskRoom, reserved: ReservedNames) {
    this.connection = connection;
    this.isNew = isNew;
    this.room = room;
    this.#guard = new StatementGuard(reserved);
    connection.setAuthorizer(this.#guard.authorize);
  }

  abstract flush(): Promise<void> | null;
  abstract sync(): Promise<void>;
  abstract close(): Promise<void>;

  all<Row>(query: SqlQuery): Row[] {
    return this.connection.all<Row>(query);
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.connection.get<Row>(query);
  }

  run(query: SqlQuery): { changes: number } {
    this.#requireTransaction();
    try {
      const result = this.connection.run(query);
      // After other statements, SQLite still has the number of the last one of these.
      if (CHANGES_ROWS.test(query.parts[0] ?? "")) this.#ownChanges += result.changes;
      return result;
    } catch (error) {
      throw this.#failed(this.room.explain(error));
    }
  }

  guardedStatement(parts: readonly string[]): GuardedStatement {
    const known = this.#statements.get(parts);
    if (known !== undefined) return known;
    const text = textOf(parts);
    const statement = this.#compile(text);
    // Statements about the schema run once in the life of an instance, and each would hold some kilobytes. A PRAGMA takes effect when it is compiled.
    if (!/^\s*(?:create|alter|drop|pragma)\b/i.test(text)) this.#statements.set(parts, statement);
    return statement;
  }

  get ownChanges(): number {
    return this.#ownChanges;
  }

  addFunction(name: string, work: (...values: bigint[]) => number | bigint): void {
    this.connection.addFunction(name, work);
  }

  get tableChanges(): number {
    return this.#tableChanges;
  }

  begin(): void {
    this.room.require();
    this.run(BEGIN);
    this.#isInTransaction = true;
  }

  commit(): void {
    this.run(COMMIT);
    this.#isInTransaction = false;
  }

  rollback(): void {
    this.#isInTransaction = false;
    this.#lost = null;
    this.connection.rollback();
  }

  snapshot(): Uint8Array {
    return this.connection.serialize();
  }

  protected closeConnection(): void {
    this.#statements.clear();
    this.connection.close();
  }

  #requireTransaction(): void {
    if (this.#lost !== null) throw this.#lost.reason;
  }

  /** Returns the error of a statement, and keeps it if it has ended the transaction. */
  #failed(error: unknown): unknown {
    if (this.#isInTransaction && !this.connection.isInTransaction) this.#lost = { reason: error };
    return error;
  }

  #compile(text: string): GuardedStatement {
    const compiled = this.#prepare(text);
    const { statement, isWrite, inserts, createsTrigger } = compiled;
    if (hasStatement(text.slice(statement.text.length))) return this.#script(text);
    return {
      isWrite,
      mayInsert: (table) => createsTrigger || inserts.has(table),
      all: (values) => this.#execute(text, compiled, (statement) => statement.all(values)),
      allRaw: (values, limits) =>
        counted(
          compiled,
          this.#execute(text, compiled, (statement) => statement.allRaw(values, limits)),
        ),
    };
  }

  /**
   * A text of several statements: they run in order, and the rows of the last one are returned. Each statement is compiled after the previous one
   * has run, because it may use a table that the previous one creates. So no statement is cached, and the script counts as a write to any table.
   */
  #script(text: string): GuardedStatement {
    return {
      isWrite: true,
      mayInsert: () => true,
      all: (values) => {
        if (values.length > 0)
          throw new SqlError("several statements in one text cannot take values; run them one by one", text);
        return this.#runScript<Record<string, SqlValue>[]>(text, ({ statement }) => statement.all([]), []);
      },
      allRaw: (values, limits) => {
        const none: RawRows = { columns: [], rows: [], changes: 0 };
        return this.#runScript(
          text,
          (compiled, isLast) => counted(compiled, compiled.statement.allRaw(isLast ? values : [], limits)),
          none,
        );
      },
    };
  }

  #runScript<T>(
    text: string,
    run: (compiled: Compiled<PreparedStatement>, isLast: boolean) => T,
    none: T,
  ): T {
    let result = none;
    for (let rest = text; hasStatement(rest);) {
      const compiled = this.#prepare(rest);
      const next = rest.slice(compiled.statement.text.length);
      result = this.#execute(rest, compiled, () => run(compiled, !hasStatement(next)));
      rest = next;
    }
    return result;
  }

  #execute<T>(
    text: string,
    { statement, changesTables }: Compiled<PreparedStatement>,
    run: (statement: PreparedStatement) => T,
  ): T {
    this.#requireTransaction();
    if (changesTables) this.#tableChanges += 1;
    return this.#explained(text, () => this.#guard.run(() => run(statement)));
  }

  #prepare(text: string): Compiled<PreparedStatement> {
    const compiled = this.#explained(text, () => this.#guard.compile(() => this.connection.prepare(text)));
    if (compiled.isWrite) compiled.statement.neverRunTwice();
    return compiled;
  }

  /** Turns errors of the statement into `SqlError`; errors of storage keep their class. */
  #explained<T>(text: string, work: () => T): T {
    try {
      return work();
    } catch (cause) {
      const explained = this.room.explain(cause);
      if (explained !== cause) throw this.#failed(explained);
      const message = this.#guard.refusal ?? (cause instanceof Error ? cause.message : String(cause));
      throw this.#failed(new SqlError(message, text.trim(), cause));
    }
  }
}

/** SQLite counts neither the rows that a statement returns nor changes of the schema: there it still has the number of the statement before. */
function counted({ isWrite, changesTables }: Compiled<PreparedStatement>, raw: RawRows): RawRows {
  if (!isWrite) return { ...raw, changes: 0 };
  if (changesTables) return { ...raw, changes: 1 };
  return raw.columns.length === 0 ? raw : { ...raw, changes: raw.rows.length };
}
