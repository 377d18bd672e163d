/**
 * The control plane's database: accounts, tokens, gateways, tags, everything except agents' own databases and call logs.
 *
 * Invariants every adapter keeps (they are the contract list in `storage/contract/`):
 * 1. A promise of a write (`run`, `transaction`) resolves only when its effect is on stable storage.
 * 2. `transaction` is all or nothing; transactions do not interleave; a throwing callback leaves no trace.
 * 3. A read outside a transaction sees only committed data, and every write whose promise has resolved before.
 * 4. Rows are plain objects; integers are JavaScript numbers, blobs are `Uint8Array`, absent values are null.
 */
import type { SqlQuery } from "./sql.ts";

export interface Queryable {
  all<Row>(query: SqlQuery): Promise<Row[]>;
  /** The first row, or undefined. */
  get<Row>(query: SqlQuery): Promise<Row | undefined>;
  /** Executes a write; `changes` is the number of rows it touched. */
  run(query: SqlQuery): Promise<{ changes: number }>;
}

export interface Database extends Queryable {
  /** Which SQL dialect the adapter speaks, for the few statements that cannot be shared. */
  readonly engine: "sqlite" | "postgres";
  /**
   * Runs `work` alone: no other write happens meanwhile, so keep it short and await nothing but `tx` inside.
   * Resolves with what `work` returned once the commit is durable.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}
