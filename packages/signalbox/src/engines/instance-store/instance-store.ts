/**
 * The interface of the instance store: many small SQLite databases, one for each instance, in one folder. `open-instance-store.ts` lists the
 * engines behind it.
 *
 * Invariants of every engine:
 * 1. At most one `InstanceDatabase` is open for a name, in one process. The caller closes a database before it opens the database again.
 * 2. Statements are synchronous and see all earlier writes. Every write runs between `begin` and `commit`; transactions do not nest.
 * 3. A promise from `sync` resolves only after all commits before the call are durable: they survive a power failure. `commit` alone promises
 *    nothing about durability. A failed `sync` is final: the engine calls `onFailure`, and no later `sync` resolves.
 * 4. While the disk is full, `open` and `begin` throw `storage_unavailable` at once, committed transactions are kept, and `openToRead` works for
 *    closed databases. Writing resumes without intervention when the disk has room.
 * 5. A database exists from its first commit. A database that was open and without a commit at a crash does not exist afterwards.
 */
import type { SqlQuery, SqlValue } from "../../core/sql.ts";
import type { RawRows, RowLimits } from "../sqlite-file/index.ts";

export interface InstanceStore {
  /**
   * Opens the database of the instance, and creates the database if none exists: with the base tables and with the tables of `schema`. An
   * existing database ignores `schema`.
   *
   * @param name Identifies the instance; any text.
   */
  open(name: string, schema?: string): Promise<InstanceDatabase>;
  /** Opens an existing database for reading; on a full disk, too. */
  openToRead(name: string): Promise<InstanceDatabase>;
  /** Removes a closed database; resolves when the removal is durable. Does nothing if no database exists. */
  destroy(name: string): Promise<void>;
  /**
   * Replaces the content of a closed database, which exists, by the bytes of another database file (`InstanceDatabase.snapshot`) on which the statements were
   * run. As one transaction: after a crash the database has either content. Resolves when the new one is durable.
   */
  replace(name: string, content: Uint8Array, statements?: readonly SqlQuery[]): Promise<void>;
  /**
   * Runs one reading statement on a snapshot, in another process. Rejects with `SqlError` if the text is not one statement, writes, accesses
   * anything but the snapshot, or exceeds the limits.
   */
  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult>;
  /** Why no instance can write now, as text for operators; null if instances can write. */
  readonly problem: string | null;
  /** Throws `storage_unavailable` while no instance can write. */
  requireRoom(): void;
  /** Releases all files. All databases must be closed. */
  close(): Promise<void>;
}

/** A store whose databases are files of this machine. */
export interface LocalInstanceStore extends InstanceStore {
  /** The ids of all databases. One that is created or destroyed meanwhile may be missing. */
  listIds(): Iterable<string>;
  /**
   * Copies the database as of its last commit to a new file; open instances go on meanwhile. False, and no file, if there is no such database, or if it
   * has no commit.
   */
  copy(id: string, path: string): Promise<boolean>;
  /** The content of a closed database of at most `maxBytes`; null for any other, of which `copy` knows more. Faster than `copy` for small ones. */
  readClosed(id: string, maxBytes: number): Promise<Uint8Array | null>;
}

export interface InstanceStoreOptions {
  readonly folder: string;
  readonly baseSchema: BaseSchema;
  /** Guarded statements cannot write to, or create, a table of such a name or with such a name and `_` as a prefix. */
  readonly reservedNames: readonly string[];
  /** Size at which the journal starts another file. The plain engine has no journal. */
  readonly segmentBytes: number;
  /** Must end the process: after a failed sync the state of the disk is unknown. */
  readonly onFailure: (error: Error) => void;
  /** The disk is full; called at most once a minute. */
  readonly onStall: (error: Error) => void;
}

/** Tables that every database has. `PRAGMA user_version` holds the version. */
export interface BaseSchema {
  /** 1 or more: version 0 is a database without a commit. */
  readonly version: number;
  /** Statements that create the tables. */
  readonly create: string;
  /** Statements that upgrade a database of the given earlier version, without BEGIN and COMMIT. */
  upgrade(version: number): string;
}

export interface QueryLimits {
  readonly maxRows: number;
  /** Approximate size of all rows together, and the size limit of one value. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Memory of the process that runs the query. */
  readonly maxMemoryBytes: number;
}

export interface QueryResult {
  readonly rows: readonly Readonly<Record<string, SqlValue>>[];
  /** True if the limits cut off further rows. */
  readonly isCut: boolean;
}

export interface InstanceDatabase {
  /** True if `open` created the database. */
  readonly isNew: boolean;

  /** Trusted statements: the guard does not check them. */
  all<Row>(query: SqlQuery): Row[];
  get<Row>(query: SqlQuery): Row | undefined;
  run(query: SqlQuery): { changes: number };

  /**
   * Compiles a statement of foreign code. Throws `SqlError` if the text does not compile, or if the guard refuses the statement: ATTACH,
   * transaction statements, PRAGMA, writes to reserved tables.
   */
  guardedStatement(parts: readonly string[]): GuardedStatement;

  /** Rows that trusted statements have changed since the database was opened. */
  readonly ownChanges: number;

  /** A function for the statements of this connection. It gets integers as bigint, and its results may be so. Schemas cannot contain it. */
  addFunction(name: string, work: (...values: bigint[]) => number | bigint): void;

  /** Increases whenever a guarded statement may have added or removed tables or constraints. */
  readonly tableChanges: number;

  begin(): void;
  commit(): void;
  /** Does nothing if no transaction is open. */
  rollback(): void;

  /**
   * Makes all commits survive the end of the process, though not necessarily a power failure. Null if they do when the call returns; otherwise they
   * do when the promise resolves.
   */
  flush(): Promise<void> | null;
  /** Resolves when all commits are durable. */
  sync(): Promise<void>;
  /** The current content as the bytes of a database file. */
  snapshot(): Uint8Array;
  /** Makes all commits durable and closes all files. */
  close(): Promise<void>;
}

export interface GuardedStatement {
  /** True if the statement may change the database; then a transaction must be open. */
  readonly isWrite: boolean;
  /** True if the statement may insert rows into the table, also by a trigger, or creates a trigger. `table` is in lower case. */
  mayInsert(table: string): boolean;
  /** Integers beyond 2^53 are returned as bigint. */
  all(values: readonly SqlValue[]): Record<string, SqlValue>[];
  /**
   * The rows as arrays of values, with repeated columns. All integers are numbers. In a text of several statements, the values and the rows belong
   * to the last one. Throws if the rows exceed the limits.
   */
  allRaw(values: readonly SqlValue[], limits?: RowLimits): RawRows;
}

/** An error in a guarded statement or in a query, with the statement's text. */
export class SqlError extends Error {
  override readonly name = "SqlError";
  readonly query: string;

  constructor(message: string, query: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.query = query;
  }
}
