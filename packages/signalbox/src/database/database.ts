/**
 * The database of the control plane: accounts, tokens, gateways and tags. Databases of agents and call logs are separate.
 *
 * Invariants of every adapter (`database-contract.ts` tests them):
 * 1. The promise of a write (`run`, `transaction`) resolves only when the write is on stable storage.
 * 2. `transaction` is atomic; transactions of one scope do not interleave; if the callback throws, nothing is written.
 * 3. A read outside a transaction sees only committed data, including every write whose promise has resolved.
 * 4. Rows are plain objects; integers are JavaScript numbers, blobs are `Uint8Array`, NULL is null.
 * 5. If storage is temporarily unavailable (disk full, locked by another program, server restart), reads and writes wait for a bounded time
 *    and then fail with `storage_unavailable`: nothing was written. The database recovers without a restart of the process.
 *    `write_outcome_unknown` is the only error after which a write may have been committed.
 */
import type { Queryable } from "../core/queryable.ts";
import type { SqlQuery } from "../core/sql.ts";

export type { Queryable };

export interface TransactionOptions {
  /**
   * Transactions of different scopes may run concurrently, so they must use different tables. Default: one scope for all transactions without a
   * name.
   */
  readonly scope?: string;
  /**
   * Transactions of this scope on different nodes may run at the same time: the statements are correct in any order (inserts that ignore
   * conflicts, updates of single rows). Within one process they are still serialised. If two nodes change the same rows in another order, the work of one of
   * them runs again: it must only use the transaction. Default: a scope is serialised over all nodes.
   */
  readonly isConcurrent?: boolean;
  /** Statements have no time limit, e.g. for changes of large tables. Default: one minute per statement on PostgreSQL. */
  readonly mayTakeLong?: boolean;
}

/** A row of `readBlobs`. */
export interface LabelledBlob {
  readonly label: string;
  readonly bytes: Uint8Array;
}

/** Whose turn a scan is. */
export interface ScanTurn {
  /** Accounts take turns; `""` for what the service reads for itself. */
  readonly account: string;
  /** `page`: an index finds the rows in their order, and there are few. `search`: any other. A page never waits for a search. */
  readonly kind: "page" | "search";
}

export interface Database extends Queryable {
  /** The SQL dialect, for the few statements that differ. */
  readonly engine: "sqlite" | "postgres";
  /** Whether other nodes write to this database too, so that a copy of its rows in memory may be out of date. Default: no. */
  readonly isShared?: boolean;
  /**
   * Like `all`, for a query that may visit many rows, such as a list with filters or a count: SQLite runs it outside of the event loop's thread, which costs a
   * tenth of a millisecond. Not for a read that a request of a client waits for when its rows are found by an index. Few scans run at once, and accounts
   * take turns; throws `overloaded` if too many of the account wait.
   */
  scan<Row>(query: SqlQuery, turn: ScanTurn): Promise<Row[]>;
  /**
   * Like `all`, for rows with large blobs: the columns of the query are `label`, a text, and `bytes`, and neither is NULL. PostgreSQL sends them as they are
   * and not as hexadecimal text. Absent where `all` is as quick.
   */
  readBlobs?(query: SqlQuery): Promise<LabelledBlob[]>;
  /**
   * Runs `work` in a transaction. Other transactions of the scope wait, so `work` must be short and must await only `tx`. If the connection to the
   * server is lost before the commit, or a lock is not free in time, `work` runs again: what it does besides `tx` must not depend on how often it runs. Resolves to the result of `work`
   * when the commit is durable.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** Why the database cannot write at the moment, as text for operators; null if it can. */
  readonly problem: string | null;
  /**
   * Calls the listener when the database has lost writes that it had acknowledged, for example after a failover: what was read or written
   * before may not exist any more, so caches of facts that never change must be emptied. Absent if that cannot happen.
   */
  onLoss?(listener: () => void): void;
  close(): Promise<void>;
}
