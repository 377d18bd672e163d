/** Writes of tags: through the queue for real, or tried out without a trace. */
import type { Clock } from "../../core/clock.ts";
import type { Database } from "../../database/database.ts";
import type { AccountNumbers } from "./account-numbers.ts";
import { BITMAP_MIN_USES } from "../../engines/tag-index/index.ts";
import { findResourceRow, type ResourceKey, type TaggedResource, toTaggedResource } from "./resource-row.ts";
import { TAG_TABLES } from "./tag-tables.ts";
import { effectOf, outcomeOf, type TagWrite, type WriteOutcome } from "./tag-write.ts";
import { writeBatch } from "./write-batch.ts";
import { WriteQueue, type WriteQueueOptions } from "./write-queue.ts";

/** Writes of a load that share one pass over the index; more would save little and hold more in memory. */
const LOAD_BATCH = 100_000;

export class TagWriter {
  readonly #database: Database;
  readonly #clock: Clock;
  readonly #accounts: AccountNumbers;
  readonly #options: WriteQueueOptions;
  readonly #queue: WriteQueue;

  constructor(database: Database, clock: Clock, accounts: AccountNumbers, options: WriteQueueOptions) {
    this.#database = database;
    this.#clock = clock;
    this.#accounts = accounts;
    this.#options = options;
    this.#queue = new WriteQueue(database, clock, options);
  }

  /** Resolves when the write is on stable storage, or was refused. */
  async write(accountId: string, write: TagWrite): Promise<WriteOutcome> {
    return this.#queue.submit(await this.#accounts.findOrCreate(accountId), write);
  }

  /** What the writes would do, one after the other, as things stand; nothing is stored. */
  async preview(accountId: string, writes: readonly TagWrite[]): Promise<WriteOutcome[]> {
    const accountNo = await this.#accounts.find(accountId);
    const states = new Map<string, { current: TaggedResource | null; lastUpdatedAt: number }>();
    const rules = { maxTagsPerResource: this.#options.maxTagsPerResource, now: this.#clock.now() };
    const outcomes: WriteOutcome[] = [];
    for (const write of writes) {
      const name = nameOf(write.resource);
      let state = states.get(name);
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
      states.set(name, { current: next, lastUpdatedAt: next?.updatedAt ?? state.lastUpdatedAt });
    }
    return outcomes;
  }

  /**
   * Loads existing data in one transaction, without history: a migration from elsewhere, or a generated data set. It holds the writer
   * for as long as it takes, so it is not for a server that is serving. Refused writes are left out; the number of others is returned.
   */
  async load(accountId: string, writes: Iterable<TagWrite>): Promise<number> {
    const accountNo = await this.#accounts.findOrCreate(accountId);
    const options = {
      maxTagsPerResource: this.#options.maxTagsPerResource,
      now: this.#clock.now(),
      withHistory: false,
      budgetMs: Number.POSITIVE_INFINITY,
      bitmapMinUses: this.#options.bitmapMinUses ?? BITMAP_MIN_USES,
    };
    const count = await this.#database.transaction(async (tx) => {
      let loaded = 0;
      for (const batch of inBatches(writes, LOAD_BATCH)) {
        const { outcomes } = await writeBatch(tx, accountNo, batch, options);
        loaded += outcomes.filter((outcome) => outcome.kind !== "refused").length;
      }
      return loaded;
    }, TAG_TABLES);
    this.#options.cache.clear();
    return count;
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

function nameOf(resource: ResourceKey): string {
  return JSON.stringify([resource.type, resource.id, resource.zoneId, resource.parentId]);
}
