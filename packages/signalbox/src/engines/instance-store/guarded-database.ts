/**
 * What the databases of both engines have in common: an SQLite connection with trusted statements, guarded statements and transactions. The engines
 * add `flush`, `sync` and `close`.
 *
 * Invariant: guarded statements compile and run under the guard; trusted statements do not.
 */
import { rawSql, type SqlQuery, type SqlValue } from "../../core/sql.ts";
import {
  type PreparedStatement,
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

/** Compiled guarded statements of one database; more than one class of instances usually has. */
const STATEMENT_CACHE_SIZE = 64;

export abstract class GuardedDatabase implements InstanceDatabase {
  readonly isNew: boolean;
  protected readonly connection: SqliteConnection;
  protected readonly room: DiskRoom;
  readonly #guard: StatementGuard;
  readonly #statements = new StatementCache<GuardedStatement>(STATEMENT_CACHE_SIZE);
  #tableChanges = 0;

  constructor(connection: SqliteConnection, isNew: boolean, room: DiskRoom, reserved: ReservedNames) {
    this.connection = connection;
    this.isNew = isNew;
    this.room = room;
    this.#guard = new StatementGuard(reserved);
    connection.setAuthorizer(this.#guard.authorize);
  }

  abstract flush(): void;
  abstract sync(): Promise<void>;
  abstract close(): Promise<void>;

  all<Row>(query: SqlQuery): Row[] {
    return this.connection.all<Row>(query);
  }

  get<Row>(query: SqlQuery): Row | undefined {
    return this.connection.get<Row>(query);
  }

  run(query: SqlQuery): { changes: number } {
    try {
      return this.connection.run(query);
    } catch (error) {
      throw this.room.explain(error);
    }
  }

  guardedStatement(parts: readonly string[]): GuardedStatement {
    const known = this.#statements.get(parts);
    if (known !== undefined) return known;
    const statement = this.#compile(textOf(parts));
    this.#statements.set(parts, statement);
    return statement;
  }

  get tableChanges(): number {
    return this.#tableChanges;
  }

  begin(): void {
    this.room.require();
    this.run(BEGIN);
  }

  commit(): void {
    this.run(COMMIT);
  }

  rollback(): void {
    this.connection.rollback();
  }

  snapshot(): Uint8Array {
    return this.connection.serialize();
  }

  protected closeConnection(): void {
    this.#statements.clear();
    this.connection.close();
  }

  #compile(text: string): GuardedStatement {
    const compiled = this.#prepare(text);
    const { statement, isWrite, inserts, createsTrigger } = compiled;
    if (hasStatement(text.slice(statement.text.length))) return this.#script(text);
    return {
      isWrite,
      mayInsert: (table) => createsTrigger || inserts.has(table),
      all: (values) => this.#execute(text, compiled, values),
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
        let rows: Record<string, SqlValue>[] = [];
        for (let rest = text; hasStatement(rest);) {
          const compiled = this.#prepare(rest);
          rows = this.#execute(rest, compiled, []);
          rest = rest.slice(compiled.statement.text.length);
        }
        return rows;
      },
    };
  }

  #execute(
    text: string,
    { statement, changesTables }: Compiled<PreparedStatement>,
    values: readonly SqlValue[],
  ): Record<string, SqlValue>[] {
    if (changesTables) this.#tableChanges += 1;
    return this.#explained(text, () => this.#guard.run(() => statement.all(values)));
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
      if (explained !== cause) throw explained;
      const message = this.#guard.refusal ?? (cause instanceof Error ? cause.message : String(cause));
      throw new SqlError(message, text.trim(), cause);
    }
  }
}
