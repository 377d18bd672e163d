/**
 * The control plane's database: accounts, tokens, gateways, tags, everything except agents' own databases and call logs.
 *
 * Invariants every adapter keeps (they are the contract list in `database-contract.ts`):
 * 1. A promise of a write (`run`, `transaction`) resolves only when its effect is on stable storage.
 * 2. `transaction` is all or nothing; transactions of one scope do not interleave; a throwing callback leaves no trace.
 * 3. A read outside a transaction sees only committed data, and every write whose promise has resolved before.
 * 4. Rows are plain objects; integers are JavaScript numbers, blobs are `Uint8Array`, absent values are null.
 * 5. Where storage is away for a while (no room, locked by another program, a server that restarts), reads and writes wait for a bounded
 *    time and then fail with `storage_unavailable`: nothing was written. Everything works again by itself when storage is back.
 *    `write_outcome_unknown` is the one failure after which a write may have taken place.
 */
import type { Queryable } from "../core/queryable.ts";

export type { Queryable };

export interface TransactionOptions {
  /**
   * Name of the tables that the work reads and writes, when no other work touches them: transactions of different scopes may then run side by
   * side. Default: the scope that everything without a name shares.
   */
  readonly scope?: string;
  /** Its statements take as long as they need, e.g. to change tables of any size. Default: a minute each, where a server carries them out. */
  readonly mayTakeLong?: boolean;
}

export interface Database extends Queryable {
  /** Which SQL dialect the adapter speaks, for the few statements that cannot be shared. */
  readonly engine: "sqlite" | "postgres";
  /**
   * Runs `work` alone in its scope: no other write of the scope happens meanwhile, so keep it short and await nothing but `tx` inside.
   * Resolves with what `work` returned once the commit is durable.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>, options?: TransactionOptions): Promise<T>;
  /** What keeps it from writing at the moment, in words for operators; null when nothing does. It becomes null by itself. */
  readonly problem: string | null;
  close(): Promise<void>;
}
