/**
 * Writes tags. Concurrent writes of one account are combined into batches, one transaction each.
 *
 * Invariants:
 * 1. Writes of an account are applied in the order in which they were submitted.
 * 2. The promise of a write resolves only when its batch is durable.
 * 3. At most two batches of an account run at a time: while the first is synced to disk, the second one runs. Writes that arrive in the meantime form
 *    the next batch.
 * 4. If a transaction cannot begin, all waiting writes fail. The first one has already waited for the timeout; if each write waited in turn, the
 *    last one would wait for the sum of all timeouts.
 * See docs/decisions/0031.
 */
import { type AuditTrail, currentWrite, type PendingWrite } from "../../contracts/audit-trail.ts";
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import type { AccountNumbers } from "./account-numbers.ts";
import { overloaded } from "../../core/overload.ts";
import { BITMAP_MIN_USES } from "../../engines/tag-index/index.ts";
import { findResourceRow, identityOf, type TaggedResource, toTaggedResource } from "./resource-row.ts";
import { scopeOfAccount } from "./tag-tables.ts";
import { effectOf, outcomeOf, type TagWrite, type WriteOutcome } from "./tag-write.ts";
import { isPart, recordBatch } from "./record-batch.ts";
import { writeBatch } from "./write-batch.ts";
import {
  type TransactionWork,
  WriteTransactions,
  type WriteTransactionsOptions,
} from "./write-transactions.ts";

/** Writes that share the cost of a transaction and the pages that it changes: some thirty milliseconds, for which other transactions wait. */
const MAX_BATCH = 128;
const MAX_RUNNING_BATCHES = 2;
/** Waiting writes of one account: about ten seconds of work. Further writes fail with `overloaded`. */
const MAX_PENDING = 20_000;

interface Pending {
  readonly write: TagWrite;
  /** The management write that this is, or is a part of. */
  readonly audited: PendingWrite | undefined;
  readonly resolve: (outcome: WriteOutcome) => void;
  readonly reject: (error: unknown) => void;
}

interface AccountQueue {
  readonly accountNo: number;
  pending: Pending[];
  runningBatches: number;
}

export interface TagWriterOptions extends WriteTransactionsOptions {
  readonly audit?: Pick<AuditTrail, "recordIn"> | undefined;
}

/** Writes of a load that share one update of the index. More would need more memory and save little. */
const LOAD_BATCH = 100_000;

export class TagWriter {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #accounts: AccountNumbers;
  readonly #options: TagWriterOptions;
  readonly #transactions: WriteTransactions;
  readonly #queue: WriteQueue;

  constructor(database: Database, clock: Clock, accounts: AccountNumbers, options: TagWriterOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#accounts = accounts;
    this.#options = options;
    this.#transactions = new WriteTransactions(database, clock, options);
    this.#queue = new WriteQueue(this.#transactions, options.audit);
  }

  /** Runs `work` in a transaction of its own, for writes that are stored together with something else. */
  transaction<T>(accountNo: number, work: TransactionWork<T>): Promise<T> {
    return this.#transactions.run(accountNo, work);
  }

  /** Resolves when the write is durable, or was refused. */
  async write(accountId: string, write: TagWrite): Promise<WriteOutcome> {
    return this.#queue.submit(await this.#accounts.findOrCreate(accountId), write);
  }

  /** Returns the outcomes that the writes would have in this order. Stores nothing. */
  async preview(accountId: string, writes: readonly TagWrite[]): Promise<WriteOutcome[]> {
    const accountNo = await this.#accounts.find(accountId);
    const states = new Map<string, { current: TaggedResource | null; lastUpdatedAt: number }>();
    const rules = { maxTagsPerResource: this.#options.maxTagsPerResource, now: this.#clock.now() };
    const outcomes: WriteOutcome[] = [];
    for (const write of writes) {
      const identity = identityOf(write.resource);
      let state = states.get(identity);
      if (state === undefined) {
        const row =
          accountNo === null ? undefined : await findResourceRow(this.#database, accountNo, write.resource);
        state = {
          current: row === undefined ? null : toTaggedResource(row),
          lastUpdatedAt: row?.updated_at ?? 0,
        };
      }
      const effect = effectOf(write, state.current, state.lastUpdatedAt, rules);
      outcomes.push(outcomeOf(write, effect, state.current));
      const next = effect.kind === "changed" ? effect.next : state.current;
      states.set(identity, { current: next, lastUpdatedAt: next?.updatedAt ?? state.lastUpdatedAt });
    }
    return outcomes;
  }

  /**
   * Loads existing data in one transaction, without history, e.g. for a migration. All other writes of the account wait, so do not use it on a
   * server in operation. Returns the number of writes that were not refused.
   */
  async load(accountId: string, writes: Iterable<TagWrite>): Promise<number> {
    const accountNo = await this.#accounts.findOrCreate(accountId);
    const options = {
      maxTagsPerResource: this.#options.maxTagsPerResource,
      now: this.#clock.now(),
      withHistory: false,
      bitmapMinUses: this.#options.bitmapMinUses ?? BITMAP_MIN_USES,
    };
    const count = await this.#database.transaction(async (tx) => {
      let loaded = 0;
      for (const batch of inBatches(writes, LOAD_BATCH)) {
        const { outcomes } = await writeBatch(tx, accountNo, batch, options);
        loaded += outcomes.filter((outcome) => outcome.kind !== "refused").length;
      }
      return loaded;
    }, scopeOfAccount(accountNo));
    this.#options.cache.clear();
    return count;
  }
}

class WriteQueue {
  readonly #transactions: WriteTransactions;
  readonly #audit: TagWriterOptions["audit"];
  readonly #queues = new Map<number, AccountQueue>();

  constructor(transactions: WriteTransactions, audit: TagWriterOptions["audit"]) {
    this.#transactions = transactions;
    this.#audit = audit;
  }

  /** Throws `overloaded` when too many writes are waiting. */
  submit(accountNo: number, write: TagWrite): Promise<WriteOutcome> {
    return new Promise((resolve, reject) => {
      let queue = this.#queues.get(accountNo);
      if (queue === undefined) {
        queue = { accountNo, pending: [], runningBatches: 0 };
        this.#queues.set(accountNo, queue);
      }
      if (queue.pending.length >= MAX_PENDING) {
        throw overloaded();
      }
      queue.pending.push({ write, audited: currentWrite.getStore(), resolve, reject });
      this.#advance(queue);
    });
  }

  #advance(queue: AccountQueue): void {
    if (queue.pending.length > 0 && queue.runningBatches < MAX_RUNNING_BATCHES) {
      queue.runningBatches += 1;
      // A batch contains writes of several requests, so it runs outside of theirs.
      void currentWrite.run(undefined, () => this.#runBatch(queue));
    } else if (queue.runningBatches === 0) {
      this.#queues.delete(queue.accountNo);
    }
  }

  async #runBatch(queue: AccountQueue): Promise<void> {
    let taken: Pending[] = [];
    try {
      const outcomes = await this.#transactions.run(queue.accountNo, async (tx, execute) => {
        // Taken when the transaction begins, so that writes that arrived until then are included. After a conflict the adapter runs this
        // function again, with the same writes.
        if (taken.length === 0) taken = queue.pending.splice(0, MAX_BATCH);
        if (taken.length === 0) return [];
        const batch = await execute(taken.map(({ write }) => write));
        if (this.#audit !== undefined) await recordBatch(tx, this.#audit, taken, batch);
        return batch.outcomes;
      });
      taken.forEach(({ audited, write }, i) => {
        if (outcomes[i]?.kind !== "refused") audited?.committed(!isPart(write));
      });
      taken.forEach(({ resolve }, i) => resolve(outcomes[i] as WriteOutcome));
    } catch (error) {
      const failed = taken.length > 0 ? taken : queue.pending.splice(0);
      for (const { reject } of failed) reject(error);
    } finally {
      queue.runningBatches -= 1;
      this.#advance(queue);
    }
  }
}

function* inBatches<T>(items: Iterable<T>, size: number): Generator<T[]> {
  let batch: T[] = [];
  for (const item of items) {
    batch.push(item);
    if (batch.length === size) {
      yield batch;
      batch = [];
    }
  }
  if (batch.length > 0) yield batch;
}
