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
  type Authorizer,
  type PreparedStatement,
  type RawRows,
  SQLITE_ACTIONS as A,
  type SqliteConnection,
  StatementCache,
  textOf,
} from "../sqlite-file/index.ts";
import type { DiskRoom } from "./disk-room.ts";
import { type GuardedStatement, type InstanceDatabase, SqlError } from "./instance-store.ts";
import type { ReservedNames } from "./reserved-names.ts";

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
      return this.connection.run(query);
    } catch (error) {
      throw this.#failed(this.room.explain(error));
    }
  }

  guardedStatement(parts: readonly string[]): GuardedStatement {
    const known = this.#statements.get(parts);
    if (known !== undefined) return known;
    const text = textOf(parts);
    const statement = this.#compile(text);
    // Statements about the schema run once in the life of an instance, and each would hold some kilobytes.
    if (!/^\s*(?:create|alter|drop)\b/i.test(text)) this.#statements.set(parts, statement);
    return statement;
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
      allRaw: (values) => this.#execute(text, compiled, (statement) => statement.allRaw(values)),
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
        return this.#runScript<Record<string, SqlValue>[]>(text, (statement) => statement.all([]), []);
      },
      allRaw: (values) => {
        const none: RawRows = { columns: [], rows: [], changes: 0 };
        return this.#runScript(text, (statement, isLast) => statement.allRaw(isLast ? values : []), none);
      },
    };
  }

  #runScript<T>(text: string, run: (statement: PreparedStatement, isLast: boolean) => T, none: T): T {
    let result = none;
    for (let rest = text; hasStatement(rest);) {
      const compiled = this.#prepare(rest);
      const next = rest.slice(compiled.statement.text.length);
      result = this.#execute(rest, compiled, (statement) => run(statement, !hasStatement(next)));
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

/*
 * Checks statements of foreign code. SQLite calls the guard while it compiles a statement, so that a cached statement is not checked again.
 *
 * Refused: ATTACH, DETACH and VACUUM, transaction statements, PRAGMA (except those that describe or check the schema, and `defer_foreign_keys`),
 * `load_extension`, writes to reserved tables, triggers on reserved tables, and creating anything with a reserved name. Reading reserved tables is
 * allowed.
 */

/** PRAGMA statements that only describe the schema or check it. Full-text tables read `data_version` themselves. */
const HARMLESS_PRAGMAS: ReadonlySet<string> = new Set([
  "data_version",
  "foreign_key_check",
  "foreign_key_list",
  "index_info",
  "index_list",
  "index_xinfo",
  "table_info",
  "table_list",
  "table_xinfo",
]);

/** Lasts until the transaction ends, which then fails if a reference is still violated. */
const DEFER_REFERENCES = "defer_foreign_keys";

/** Actions that write, and which of the two names passed with an action is the table. */
const WRITES: ReadonlyMap<number, "first" | "second"> = new Map([
  [A.SQLITE_INSERT, "first"],
  [A.SQLITE_UPDATE, "first"],
  [A.SQLITE_DELETE, "first"],
  [A.SQLITE_CREATE_TABLE, "first"],
  [A.SQLITE_CREATE_TEMP_TABLE, "first"],
  [A.SQLITE_CREATE_VTABLE, "first"],
  [A.SQLITE_CREATE_VIEW, "first"],
  [A.SQLITE_CREATE_TEMP_VIEW, "first"],
  [A.SQLITE_CREATE_INDEX, "second"],
  [A.SQLITE_CREATE_TEMP_INDEX, "second"],
  [A.SQLITE_CREATE_TRIGGER, "second"],
  [A.SQLITE_CREATE_TEMP_TRIGGER, "second"],
  [A.SQLITE_DROP_TABLE, "first"],
  [A.SQLITE_DROP_TEMP_TABLE, "first"],
  [A.SQLITE_DROP_VTABLE, "first"],
  [A.SQLITE_DROP_VIEW, "first"],
  [A.SQLITE_DROP_TEMP_VIEW, "first"],
  [A.SQLITE_DROP_INDEX, "second"],
  [A.SQLITE_DROP_TEMP_INDEX, "second"],
  [A.SQLITE_DROP_TRIGGER, "second"],
  [A.SQLITE_DROP_TEMP_TRIGGER, "second"],
  [A.SQLITE_ALTER_TABLE, "second"],
  [A.SQLITE_ANALYZE, "first"],
  [A.SQLITE_REINDEX, "first"],
]);

/** Actions that create an index or a trigger; its name is the first of the two. */
const INDEXES_AND_TRIGGERS: ReadonlySet<number> = new Set([
  A.SQLITE_CREATE_INDEX,
  A.SQLITE_CREATE_TEMP_INDEX,
  A.SQLITE_CREATE_TRIGGER,
  A.SQLITE_CREATE_TEMP_TRIGGER,
]);

/** Actions that add or remove tables or constraints. */
const TABLE_CHANGES: ReadonlySet<number> = new Set([
  A.SQLITE_CREATE_TABLE,
  A.SQLITE_CREATE_TEMP_TABLE,
  A.SQLITE_CREATE_VTABLE,
  A.SQLITE_DROP_TABLE,
  A.SQLITE_DROP_TEMP_TABLE,
  A.SQLITE_DROP_VTABLE,
  A.SQLITE_ALTER_TABLE,
]);

const TRIGGERS: ReadonlySet<number> = new Set([A.SQLITE_CREATE_TRIGGER, A.SQLITE_CREATE_TEMP_TRIGGER]);

const NO_TRANSACTIONS = "transactions are the runtime's: statements cannot begin or end one";

const REFUSED: ReadonlyMap<number, string> = new Map([
  [A.SQLITE_ATTACH, "attaching a file is not allowed"],
  [A.SQLITE_DETACH, "detaching a file is not allowed"],
  [A.SQLITE_TRANSACTION, NO_TRANSACTIONS],
  [A.SQLITE_SAVEPOINT, NO_TRANSACTIONS],
]);

/** True if the action neither writes nor is refused by the guard. */
export function mayRead(action: number, first: string | null, second: string | null): boolean {
  if (WRITES.has(action) || REFUSED.has(action)) return false;
  if (action === A.SQLITE_PRAGMA) return HARMLESS_PRAGMAS.has((first ?? "").toLowerCase());
  return !(action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension");
}

/** A guarded statement, and what the statement may do. */
export interface Compiled<T> {
  readonly statement: T;
  readonly isWrite: boolean;
  readonly changesTables: boolean;
  /** Tables that rows are inserted into, also by triggers, in lower case. */
  readonly inserts: ReadonlySet<string>;
  /** The actions of a trigger are known only when the trigger runs. */
  readonly createsTrigger: boolean;
}

const NO_TABLES: ReadonlySet<string> = new Set();

export class StatementGuard {
  /** False while a guarded statement compiles or runs (SQLite compiles a statement again after a schema change). */
  isTrusted = true;
  #isWrite = false;
  #changesTables = false;
  #createsTrigger = false;
  #altersTable = false;
  #inserts: Set<string> | null = null;
  #refusal: string | null = null;
  readonly #reserved: ReservedNames;

  constructor(reserved: ReservedNames) {
    this.#reserved = reserved;
  }

  readonly authorize: Authorizer = (action, first, second) => {
    if (this.isTrusted) return true;
    const tablePosition = WRITES.get(action);
    if (tablePosition !== undefined) {
      this.#isWrite = true;
      if (TABLE_CHANGES.has(action)) this.#changesTables = true;
      else if (TRIGGERS.has(action)) this.#createsTrigger = true;
      else if (action === A.SQLITE_INSERT && first !== null)
        (this.#inserts ??= new Set()).add(first.toLowerCase());
      if (action === A.SQLITE_ALTER_TABLE) this.#altersTable = true;
      const table = tablePosition === "first" ? first : second;
      if (this.#reserved.has(table)) return this.#refuse(`the table ${table} belongs to the runtime`);
      return INDEXES_AND_TRIGGERS.has(action) && this.#reserved.has(first)
        ? this.#refuse(`the name ${first} belongs to the runtime`)
        : true;
    }
    const refusal = REFUSED.get(action);
    if (refusal !== undefined) return this.#refuse(refusal);
    if (action === A.SQLITE_PRAGMA && !this.#mayUsePragma((first ?? "").toLowerCase(), second)) {
      return this.#refuse(`PRAGMA ${first ?? ""} is not allowed`);
    }
    if (action === A.SQLITE_FUNCTION && second?.toLowerCase() === "load_extension") {
      return this.#refuse("loading extensions is not allowed");
    }
    return true;
  };

  #mayUsePragma(name: string, value: string | null): boolean {
    if (name === DEFER_REFERENCES) this.#isWrite = true;
    return (
      HARMLESS_PRAGMAS.has(name) || name === DEFER_REFERENCES || (name === "foreign_keys" && value === null)
    );
  }

  /** Compiles a guarded statement; throws if the guard refuses the statement. */
  compile<T extends { readonly text: string }>(prepare: () => T): Compiled<T> {
    this.isTrusted = false;
    this.#isWrite = false;
    this.#changesTables = false;
    this.#createsTrigger = false;
    this.#altersTable = false;
    this.#inserts = null;
    this.#refusal = null;
    try {
      const statement = prepare();
      const name = this.#altersTable ? this.#reserved.findRename(statement.text) : undefined;
      if (name !== undefined) {
        this.#refuse(`the name ${name} belongs to the runtime`);
        throw new Error("not authorized");
      }
      return {
        statement,
        isWrite: this.#isWrite,
        changesTables: this.#changesTables,
        inserts: this.#inserts ?? NO_TABLES,
        createsTrigger: this.#createsTrigger,
      };
    } finally {
      this.isTrusted = true;
    }
  }

  /** Runs a guarded statement. */
  run<T>(statement: () => T): T {
    this.isTrusted = false;
    this.#refusal = null;
    try {
      return statement();
    } finally {
      this.isTrusted = true;
    }
  }

  /** Why the last statement was refused; null if it was not refused. */
  get refusal(): string | null {
    return this.#refusal;
  }

  #refuse(reason: string): false {
    this.#refusal = reason;
    return false;
  }
}

/** True if the text contains more than blanks, comments and semicolons. */
export function hasStatement(text: string): boolean {
  return text.replaceAll(/--[^\n]*|\/\*[\s\S]*?\*\/|[\s;]+/g, "") !== "";
}
