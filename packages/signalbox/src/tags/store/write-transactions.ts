/**
 * Transactions with tag writes of one account. Beside the rows, each keeps the cache right and wakes the followers of the feed.
 *
 * Invariants:
 * 1. From before the commit until the transaction is durable or has failed, the resources of its writes are not cached.
 * 2. Followers are notified when the changes are durable.
 */
import type { Clock } from "../../core/clock.ts";
import type { Database, Queryable } from "../../database/database.ts";
import { BITMAP_MIN_USES } from "../../engines/tag-index/index.ts";
import type { ChangeLog } from "./change-log.ts";
import { cacheKey, type ResourceCache } from "./resource-cache.ts";
import { scopeOfAccount } from "./tag-tables.ts";
import type { TagWrite } from "./tag-write.ts";
import { type BatchResult, writeBatch } from "./write-batch.ts";

export interface WriteTransactionsOptions {
  readonly cache: ResourceCache;
  readonly maxTagsPerResource: number;
  /** Number of uses from which a key or value has bitmaps. Default: `BITMAP_MIN_USES`. */
  readonly bitmapMinUses?: number;
  /** Notified when changes of an account are durable. */
  readonly changes: Pick<ChangeLog, "notify">;
}

/** To be called once in a transaction. */
export type ExecuteWrites = (writes: readonly TagWrite[]) => Promise<BatchResult>;

/** Runs again after a conflict with another node. */
export type TransactionWork<T> = (tx: Queryable, execute: ExecuteWrites) => Promise<T>;

export class WriteTransactions {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #options: WriteTransactionsOptions;

  constructor(database: Database, clock: Clock, options: WriteTransactionsOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#options = options;
  }

  /** Resolves when the transaction is durable. */
  async run<T>(accountNo: number, work: TransactionWork<T>): Promise<T> {
    const { cache, changes, maxTagsPerResource, bitmapMinUses = BITMAP_MIN_USES } = this.#options;
    let keys: string[] = [];
    let hasChanges = false;
    const release = () => {
      cache.endWrite(keys);
      keys = [];
    };
    try {
      const result = await this.#database.transaction((tx) => {
        release();
        hasChanges = false;
        return work(tx, async (writes) => {
          const now = this.#clock.now();
          const options = { maxTagsPerResource, now, withHistory: true, bitmapMinUses };
          const batch = await writeBatch(tx, accountNo, writes, options);
          ({ hasChanges } = batch);
          keys = writes.map(({ resource }) => cacheKey(accountNo, resource));
          cache.beginWrite(keys);
          return batch;
        });
      }, scopeOfAccount(accountNo));
      release();
      if (hasChanges) changes.notify(accountNo);
      return result;
    } finally {
      release();
    }
  }
}
