/**
 * The inspector's list of deliveries and their outcomes. It is a convenience for operators, not a record of truth (each instance's own database
 * is), so it is bounded everywhere and never delays a delivery.
 *
 * Invariants:
 * 1. `record` does no I/O. Verified deliveries are written later, in batches; a crash may lose the last second of the list, or the last five
 *    when so many arrive that each write replaces the whole list.
 * 2. Rejected deliveries have a ring and a share of the table of their own: a flood of forged requests displaces no genuine delivery. Which of them
 *    are recorded is the decision of `RejectionBudget`.
 * 3. The newest `keep` verified deliveries are stored, those that succeeded and those that failed each (`DeliveryRetention`). At most `keep` wait to be
 *    written, and at most `MAX_WAITING`. Under overload the oldest waiting ones are never written, since they would be pruned at once.
 * 4. A read includes every record made before it, at this node or another one.
 * 5. Records that cannot be written wait, as many as in 3, and are retried after a growing pause; those displaced by newer ones are
 *    counted. A failing database is not tried with every record, and its failure is logged once.
 * See webhooks/README.md.
 */
import type { Database } from "../database/database.ts";
import type { Logger } from "../telemetry/logger.ts";
import { type DeliveryFilter, type DeliveryRecord, matches } from "./delivery-record.ts";
import { DeliveryRetention } from "./delivery-retention.ts";
import { type DeliveryStep, DeliveryTable, type StatusCount } from "./delivery-table.ts";
import type { DeliveryQuery, OtherDeliveries } from "./other-deliveries.ts";

const FLUSH_AFTER_MS = 1000;
/** When more deliveries arrive than are kept: each write then replaces the whole list. */
const FLUSH_AFTER_MS_WHEN_BUSY = 5000;
/** A transaction of one statement, short enough (a few milliseconds) not to delay a request. */
const ROWS_PER_WRITE = 100;
/** After a failed write. */
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Rejected deliveries that wait to be written: more than arrive in the time between two writes. */
const MAX_WAITING_REJECTED = 100;
/** Some seconds of deliveries, and a few megabytes beside their bodies. */
const MAX_WAITING = 10_000;
/** The pause before more rows are deleted that are beyond the number kept. */
const PRUNE_AGAIN_MS = 100;
/** Larger bodies are listed but not kept. */
const MAX_KEPT_BODY_BYTES = 256 * 1024;
/** Bodies of all waiting deliveries; beyond it deliveries wait without their bodies. */
const MAX_WAITING_BODY_BYTES = 16 * 1024 * 1024;

export interface DeliveryPage {
  readonly records: readonly DeliveryRecord[];
  /** Continue here; null at the end. */
  readonly next: string | null;
  /** Deliveries that a search looked at; null without a search. */
  readonly scanned: number | null;
}

export interface DeliverySummary {
  readonly byStatus: readonly StatusCount[];
  /** Of failed deliveries only. */
  readonly unresolved: readonly StatusCount[];
  readonly alsoRejected: ReadonlyMap<string, number>;
}

export interface DeliveryLogOptions {
  /** How many are listed. */
  readonly keep: number;
  /** Null if there is no other node. */
  readonly others?: OtherDeliveries | null;
  /** Called with the number of records that were displaced because they could not be written. */
  onDropped(count: number): void;
}

export class DeliveryLog {
  readonly #table: DeliveryTable;
  readonly #retention: DeliveryRetention;
  readonly #maxWaiting: number;
  readonly #logger: Logger;
  readonly #options: DeliveryLogOptions;
  #rejected = new Ring<DeliveryRecord>(MAX_WAITING_REJECTED);
  #waiting: Ring<DeliveryRecord>;
  #waitingBodyBytes = 0;
  /** Records of a failed write. Oldest first. */
  #unwritten: DeliveryRecord[] = [];
  #isBusy = false;
  /** True during the pause after a failed write. */
  #isPausing = false;
  /** 0 when the last write succeeded. */
  #lastPauseMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #pruneTimer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(database: Database, logger: Logger, options: DeliveryLogOptions) {
    this.#table = new DeliveryTable(database);
    this.#logger = logger;
    this.#options = options;
    this.#retention = new DeliveryRetention(this.#table, options.keep);
    this.#maxWaiting = Math.min(options.keep, MAX_WAITING);
    this.#waiting = new Ring(this.#maxWaiting);
    options.others?.serve((query) => this.#findHere(query));
  }

  record(record: DeliveryRecord): void {
    if (record.status === "rejected") {
      if (this.#options.keep > 0) this.#rejected.push(record);
      this.#flushLater();
      return;
    }
    const bodyBytes = record.body?.length ?? 0;
    const isKept =
      bodyBytes <= MAX_KEPT_BODY_BYTES && this.#waitingBodyBytes + bodyBytes <= MAX_WAITING_BODY_BYTES;
    const displaced = this.#waiting.push(isKept ? record : { ...record, body: null });
    if (displaced !== undefined && this.#maxWaiting < this.#options.keep) this.#options.onDropped(1);
    this.#waitingBodyBytes += (isKept ? bodyBytes : 0) - (displaced?.body?.length ?? 0);
    this.#flushLater();
  }

  #flushLater(): void {
    if (this.#timer === undefined) this.#flushIn(this.#isBusy ? FLUSH_AFTER_MS_WHEN_BUSY : FLUSH_AFTER_MS);
  }

  /** Resolves when every earlier record is stored or scheduled for another attempt. Never rejects. */
  flush(): Promise<void> {
    if (this.#isPausing) return this.#writing;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const fresh = this.#takeWaiting();
    this.#isBusy = fresh.length === this.#maxWaiting;
    const records = [...this.#keepNewest([...this.#unwritten, ...fresh]), ...this.#takeRejected()];
    this.#unwritten = [];
    if (records.length > 0) this.#writing = this.#writing.then(() => this.#write(records));
    return this.#writing;
  }

  /** Newest first, before `cursor`. */
  async list(
    accountId: string,
    filter: DeliveryFilter,
    cursor: string | undefined,
    limit: number,
    signal?: AbortSignal,
  ): Promise<DeliveryPage> {
    const inMemory = await this.#findEverywhere({ accountId, filter, before: cursor, limit: limit + 1 });
    const found = await this.#table.before(accountId, filter, cursor, limit + 1, signal);
    const { position, scanned } = found;
    const records = [
      ...found.records,
      ...inMemory.filter(({ id }) => position === null || id >= position),
    ].sort((a, b) => (a.id < b.id ? 1 : -1));
    const page = records.slice(0, limit);
    return { records: page, next: records.length > limit ? (page.at(-1)?.id ?? null) : position, scanned };
  }

  /** Oldest first, after `after`. */
  async since(
    accountId: string,
    filter: DeliveryFilter,
    after: string,
    limit: number,
  ): Promise<readonly DeliveryRecord[]> {
    const inMemory = await this.#findEverywhere({ accountId, filter, after, limit });
    const stored = await this.#table.after(accountId, filter, after, limit);
    return [...stored, ...inMemory].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  async find(accountId: string, id: string): Promise<DeliveryRecord | undefined> {
    const [inMemory] = await this.#findEverywhere({ accountId, filter: {}, id, limit: 1 });
    return inMemory ?? (await this.#table.find(accountId, id));
  }

  /** Those of a page of `list`, which has stored them, with their bodies. */
  withBodies(accountId: string, ids: readonly string[]): Promise<DeliveryRecord[]> {
    return this.#table.findAll(accountId, ids);
  }

  /** Counts of the listed deliveries, and of those that were rejected beside them. */
  async summary(accountId: string, times: Pick<DeliveryFilter, "since" | "until">): Promise<DeliverySummary> {
    // Every node writes what it has first.
    await this.#findEverywhere({ accountId, filter: times, limit: 1 });
    const [byStatus, unresolved, alsoRejected] = await Promise.all([
      this.#table.counts(accountId, times),
      this.#table.counts(accountId, { ...times, isUnresolved: true }),
      this.#table.alsoRejected(accountId, times),
    ]);
    return { byStatus, unresolved, alsoRejected };
  }

  /** Counts of the listed deliveries by status and step of time. */
  async histogram(
    accountId: string,
    filter: DeliveryFilter,
    stepMs: number,
    signal?: AbortSignal,
  ): Promise<DeliveryStep[]> {
    await this.#findEverywhere({ accountId, filter, limit: 1 });
    return this.#table.histogram(accountId, filter, stepMs, signal);
  }

  /** The failed delivery was handled after all. */
  async markReplayed(accountId: string, id: string, at: number): Promise<void> {
    await this.#table.markReplayed(accountId, id, at);
  }

  /** Tries once more to write; records that cannot be written are lost. */
  async close(): Promise<void> {
    this.#isPausing = false;
    await this.flush();
    clearTimeout(this.#timer);
    clearTimeout(this.#pruneTimer);
    if (this.#unwritten.length > 0) this.#options.onDropped(this.#unwritten.length);
  }

  /** The records of all nodes that are in memory only, once everything else is written. */
  async #findEverywhere(query: DeliveryQuery): Promise<DeliveryRecord[]> {
    const [here, elsewhere] = await Promise.all([this.#findHere(query), this.#options.others?.ask(query)]);
    return elsewhere === undefined ? here : [...here, ...elsewhere];
  }

  /** At most `limit`: the oldest after `after`, otherwise the newest. */
  async #findHere({ accountId, filter, id, before, after, limit }: DeliveryQuery): Promise<DeliveryRecord[]> {
    await this.flush();
    const found = [...this.#rejected.toArray(), ...this.#takeUnwritten()].filter(
      (record) =>
        record.accountId === accountId &&
        matches(record, filter) &&
        (id === undefined || record.id === id) &&
        (before === undefined || record.id < before) &&
        (after === undefined || record.id > after),
    );
    found.sort((a, b) => (a.id < b.id ? -1 : 1));
    const wanted = after === undefined ? found.slice(-limit) : found.slice(0, limit);
    return id === undefined ? wanted.map((record) => ({ ...record, body: null })) : wanted;
  }

  /** Records that a read must include during a pause. */
  #takeUnwritten(): readonly DeliveryRecord[] {
    if (this.#isPausing) this.#unwritten = this.#keepNewest([...this.#unwritten, ...this.#takeWaiting()]);
    return this.#unwritten;
  }

  #takeWaiting(): DeliveryRecord[] {
    const records = this.#waiting.toArray();
    this.#waiting = new Ring(this.#maxWaiting);
    this.#waitingBodyBytes = 0;
    return records;
  }

  #takeRejected(): DeliveryRecord[] {
    const records = this.#rejected.toArray();
    this.#rejected = new Ring(MAX_WAITING_REJECTED);
    return records;
  }

  #keepNewest(records: DeliveryRecord[]): DeliveryRecord[] {
    const surplus = records.length - this.#maxWaiting;
    if (surplus <= 0) return records;
    // At most so many records wait, so there are more only after a failed write.
    this.#options.onDropped(surplus);
    return records.slice(surplus);
  }

  async #write(records: readonly DeliveryRecord[]): Promise<void> {
    let written = 0;
    try {
      while (written < records.length) {
        const next = written + ROWS_PER_WRITE;
        await this.#table.insert(records.slice(written, next), this.#options.keep);
        this.#retention.written(records.slice(written, next));
        written = next;
      }
      if (!(await this.#retention.prune())) this.#pruneLater();
      if (this.#lastPauseMs > 0)
        this.#logger.info({}, "webhook deliveries are written to the inspector's list again");
      this.#lastPauseMs = 0;
    } catch (error) {
      if (this.#lastPauseMs === 0)
        this.#logger.error(
          { err: error },
          "webhook deliveries cannot be written to the inspector's list; they are kept in memory and retried",
        );
      const left = records.slice(written);
      const newer = this.#takeRejected();
      for (const record of left) if (record.status === "rejected") this.#rejected.push(record);
      for (const record of newer) this.#rejected.push(record);
      const genuine = left.filter(({ status }) => status !== "rejected");
      this.#unwritten = this.#keepNewest([...genuine, ...this.#unwritten]);
      this.#lastPauseMs = Math.min(Math.max(MIN_PAUSE_MS, this.#lastPauseMs * 2), MAX_PAUSE_MS);
      this.#isPausing = true;
      this.#flushIn(this.#lastPauseMs);
    }
  }

  #pruneLater(): void {
    clearTimeout(this.#pruneTimer);
    this.#pruneTimer = setTimeout(() => {
      // `#write` never rejects.
      this.#writing = this.#writing.then(() => this.#write([]));
    }, PRUNE_AGAIN_MS).unref();
  }

  #flushIn(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isPausing = false;
      // `flush` never rejects.
      void this.flush();
    }, delayMs).unref();
  }
}

/** The newest `capacity` items. */
export class Ring<T> {
  readonly #capacity: number;
  readonly #items: T[] = [];
  #next = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  /** Returns the item that is displaced, if any; the item itself when the capacity is 0. */
  push(item: T): T | undefined {
    if (this.#items.length < this.#capacity) {
      this.#items.push(item);
      return undefined;
    }
    if (this.#capacity === 0) return item;
    const displaced = this.#items[this.#next];
    this.#items[this.#next] = item;
    this.#next = (this.#next + 1) % this.#capacity;
    return displaced;
  }

  /** Oldest first. */
  toArray(): T[] {
    return [...this.#items.slice(this.#next), ...this.#items.slice(0, this.#next)];
  }
}
