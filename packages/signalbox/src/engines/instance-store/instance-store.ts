/**
 * Where agents' instances keep what they know: one synchronous SQLite database each, made durable by whatever stands behind `sync`.
 *
 * Invariants every adapter keeps:
 * 1. One `InstanceDatabase` per reference is open at a time, in one process; the caller closes it before opening it again.
 * 2. Statements are synchronous and see what was written before them. `begin`, `commit` and `rollback` do not nest.
 * 3. A promise from `sync` resolves only when everything committed before the call survives the loss of power (or of the machine,
 *    for an adapter that replicates). One call covers all commits before it. A failed `sync` is final: the adapter reports it
 *    through its `onFailure` and never resolves a later one.
 * 4. While there is no room, `open` and `begin` (not `openToRead`) fail at once with `storage_unavailable`, and what was committed waits: nothing acknowledged is lost,
 *    and everything goes on by itself when there is room.
 * 5. `commit` itself promises nothing about durability: whoever lets results out waits for `sync`.
 */
import type { SqlQuery, SqlValue } from "../../core/sql.ts";

export interface InstanceRef {
  /** Id of the account it belongs to. */
  readonly account: string;
  /** Kebab-case name of the agent's class. */
  readonly agent: string;
  readonly name: string;
}

export interface InstanceStore {
  /**
   * Opens the instance's database and creates it first if there is none: then `schema`, statements of the agent's class, has been run in it.
   * A database that is there already is opened as it is.
   */
  open(ref: InstanceRef, schema?: string): Promise<InstanceDatabase>;
  /** As `open`, for an instance that exists and is only read: that needs no room. */
  openToRead(ref: InstanceRef): Promise<InstanceDatabase>;
  /** Removes a closed instance's database; resolves when that too is durable. Removing what is not there is no error. */
  destroy(ref: InstanceRef): Promise<void>;
  /**
   * Runs one reading statement on a snapshot, away from the event loop. Rejects with `SqlError` for a statement that is not one, that
   * writes or looks outside, or that takes too long or too much memory.
   */
  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult>;
  /** What keeps instances from writing at the moment, in words for operators; null when nothing does. It becomes null by itself. */
  readonly problem: string | null;
  /** Throws `storage_unavailable` while no instance can write. */
  requireRoom(): void;
  /** Lets go of everything; all instances are closed by then. */
  close(): Promise<void>;
}

export interface QueryLimits {
  readonly maxRows: number;
  /** Of all rows together, about; also of any one value. */
  readonly maxBytes: number;
  readonly timeoutMs: number;
  /** Of whatever runs the query. */
  readonly maxMemoryBytes: number;
}

export interface QueryResult {
  readonly rows: readonly Readonly<Record<string, SqlValue>>[];
  /** True when there were more rows, or more bytes of them, than the limits. */
  readonly isCut: boolean;
}

export interface InstanceDatabase {
  /** True when `open` created it. */
  readonly isNew: boolean;

  /** Statements of the runtime itself, on its own tables. */
  all<Row>(query: SqlQuery): Row[];
  get<Row>(query: SqlQuery): Row | undefined;
  run(query: SqlQuery): { changes: number };

  /**
   * A statement of the agent's own code. Throws `SqlError` for text that does not compile, that is more than one statement (with
   * values), or that the guard refuses: attaching files, ending transactions, settings, writing to the runtime's tables.
   */
  agentStatement(parts: readonly string[]): AgentStatement;

  /** Goes up whenever a statement of the agent's may have added or removed tables or their constraints. */
  readonly tableChanges: number;

  begin(): void;
  commit(): void;
  /** Ends a transaction without a trace; no error when none is open. */
  rollback(): void;

  /** From here on what was committed survives the end of the process, if not of the machine. */
  secure(): void;
  sync(): Promise<void>;
  /** The whole database as one file's bytes, as of now. */
  snapshot(): Uint8Array;
  /** Waits for a sync in flight, makes everything durable and lets go of every file. */
  close(): Promise<void>;
}

export interface AgentStatement {
  /** True when running it may change the database, so that a transaction must be open. */
  readonly isWrite: boolean;
  /** True when running it may insert rows into the table, or create a trigger that would. `table` is written in small letters. */
  mayInsert(table: string): boolean;
  /** Integers that a number does not hold come as bigints. */
  all(values: readonly SqlValue[]): Record<string, SqlValue>[];
}

/** What the agent's SQL did wrong, with the statement. */
export class SqlError extends Error {
  override readonly name = "SqlError";
  readonly query: string;

  constructor(message: string, query: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.query = query;
  }
}
