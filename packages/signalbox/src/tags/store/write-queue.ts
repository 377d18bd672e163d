/**
 * Brings concurrent writes of one account together in batches, one transaction each.
 *
 * Invariants:
 * 1. Writes of an account are carried out in the order they were submitted.
 * 2. A write's promise resolves only when its batch is on stable storage.
 * 3. At most two batches of an account are under way: while one waits for the disk, the next one runs, and what arrives meanwhile
 *    becomes the one after that.
 * 4. A transaction that could not even begin fails every write that waits: its time is up for the first of them, and trying for each in
 *    turn would make the last one wait for all of their times.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import { BITMAP_MIN_USES } from "../../engines/tag-index/index.ts";
import { cacheKey, type ResourceCache } from "./resource-cache.ts";
import { TAG_TABLES } from "./tag-tables.ts";
import type { TagWrite, WriteOutcome } from "./tag-write.ts";
import { writeBatch } from "./write-batch.ts";

/** Enough to share the fixed costs of a transaction many times over. */
const MAX_BATCH = 64;
/** How long one batch may hold the event loop before it leaves the rest to the next. */
const BATCH_BUDGET_MS = 10;
const MAX_UNDER_WAY = 2;
/** Writes of one account that may wait: some ten seconds of work. More are refused, so that nobody waits for ever. */
const MAX_PENDING = 20_000;
const RETRY_AFTER_SECONDS = "5";

interface Pending {
  readonly write: TagWrite;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface AccountQueue {
  readonly accountNo: number;
  pending: Pending[];
  underWay: number;
}

export interface WriteQueueOptions {
  readonly cache: ResourceCache;
  readonly maxTagsPerResource: number;
  /** From how many uses on a set has bitmaps; default `BITMAP_MIN_USES`. */
  readonly bitmapMinUses?: number;
  /** Called when changes of the account are on stable storage. */
  readonly onChanged: (accountNo: number) => void;
}

export class WriteQueue {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #options: WriteQueueOptions;
  readonly #queues = new Map<number, AccountQueue>();

  constructor(database: Database, clock: Clock, options: WriteQueueOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#options = options;
  }

  /** Throws `overloaded` when too many writes wait already. */
  submit(accountNo: number, write: TagWrite): Promise<WriteOutcome> {
    return new Promise((resolve, reject) => {
      let queue = this.#queues.get(accountNo);
      if (queue === undefined) {
        queue = { accountNo, pending: [], underWay: 0 };
        this.#queues.set(accountNo, queue);
      }
      if (queue.pending.length >= MAX_PENDING) {
        throw new SignalboxError("overloaded", { headers: { "retry-after": RETRY_AFTER_SECONDS } });
      }
      queue.pending.push({ write, resolve, reject });
      this.#advance(queue);
    });
  }

  #advance(queue: AccountQueue): void {
    if (queue.pending.length > 0 && queue.underWay < MAX_UNDER_WAY) {
      queue.underWay += 1;
      void this.#runBatch(queue);
    } else if (queue.underWay === 0) {
      this.#queues.delete(queue.accountNo);
    }
  }

  async #runBatch(queue: AccountQueue): Promise<void> {
    let taken: Pending[] = [];
    let keys: string[] = [];
    const { cache } = this.#options;
    try {
      const { outcomes, hasChanges } = await this.#database.transaction(async (tx) => {
        // Taken only now, when the batch before has committed; an adapter may run this twice after a conflict.
        if (taken.length === 0) taken = queue.pending.splice(0, MAX_BATCH);
        if (taken.length === 0) return { outcomes: [], hasChanges: false };
        const batch = await writeBatch(
          tx,
          queue.accountNo,
          taken.map(({ write }) => write),
          {
            maxTagsPerResource: this.#options.maxTagsPerResource,
            now: this.#clock.now(),
            withHistory: true,
            budgetMs: BATCH_BUDGET_MS,
            bitmapMinUses: this.#options.bitmapMinUses ?? BITMAP_MIN_USES,
          },
        );
        queue.pending.unshift(...taken.splice(batch.outcomes.length));
        cache.endWrite(keys);
        keys = taken.map(({ write }) => cacheKey(queue.accountNo, write.resource));
        cache.beginWrite(keys);
        return batch;
      }, TAG_TABLES);
      cache.endWrite(keys);
      keys = [];
      if (hasChanges) this.#options.onChanged(queue.accountNo);
      taken.forEach(({ resolve }, i) => resolve(outcomes[i] as WriteOutcome));
    } catch (error) {
      const failed = taken.length > 0 ? taken : queue.pending.splice(0);
      for (const { reject } of failed) reject(error);
    } finally {
      cache.endWrite(keys);
      queue.underWay -= 1;
      this.#advance(queue);
    }
  }
}
