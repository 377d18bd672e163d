/**
 * The inspector's memory: which deliveries came, and what became of them. A convenience for people, not the record of truth (that is each
 * instance's own database), so it is bounded everywhere and never in the way of a delivery.
 *
 * Invariants:
 * 1. `record` does no I/O. Verified deliveries are written behind it in batches; a crash may lose the last second of the listing, or the last
 *    five when so many come that the list is replaced as a whole.
 * 2. Rejected deliveries live in memory only, in a ring of their own: a flood of forged requests writes nothing and pushes out no
 *    genuine delivery.
 * 3. At most `keep` verified deliveries are stored, and at most `keep` wait; at overload the oldest of those that wait are never
 *    written, since they would be pruned at once.
 * 4. A read sees every record made before it.
 * 5. What cannot be written waits, at most `keep` records, and is tried again after a pause that grows; those that have to make room
 *    for newer ones are counted. A database that fails is neither asked at every chance nor reported every time.
 */
import type { Database } from "../database/database.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DeliveryFilter, DeliveryRecord } from "./delivery-record.ts";
import { matches } from "./delivery-record.ts";
import { DeliveryTable } from "./delivery-table.ts";
import { Ring } from "./ring.ts";
import { WaitingDeliveries } from "./waiting-deliveries.ts";

const FLUSH_AFTER_MS = 1000;
/** When more have come than are kept: each write then replaces the whole list, which is of no use to anybody every second. */
const FLUSH_AFTER_MS_WHEN_BUSY = 5000;
/** Rows a transaction, which is one statement: short enough (a few milliseconds) that no request notices. */
const ROWS_PER_WRITE = 100;
/** After a failed write. */
const MIN_PAUSE_MS = 1000;
const MAX_PAUSE_MS = 30_000;
/** Larger bodies are listed but not kept. */
const MAX_KEPT_BODY_BYTES = 256 * 1024;

export interface DeliveryPage {
  readonly records: readonly DeliveryRecord[];
  /** Continue here; null at the end. */
  readonly next: string | null;
}

export interface DeliveryLogOptions {
  /** How many are listed. */
  readonly keep: number;
  /** Told of records that could not be written and had to make room. */
  onDropped(count: number): void;
}

export class DeliveryLog {
  readonly #table: DeliveryTable;
  readonly #logger: Logger;
  readonly #options: DeliveryLogOptions;
  readonly #rejected: Ring<DeliveryRecord>;
  readonly #waiting: WaitingDeliveries;
  /** Taken from those that wait, but not written: a write failed. Oldest first. */
  #unwritten: DeliveryRecord[] = [];
  #isBusy = false;
  /** True while writing is at rest after a failure. */
  #isPausing = false;
  /** How long it rested last; 0 when the last write went well. */
  #lastPauseMs = 0;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(database: Database, logger: Logger, options: DeliveryLogOptions) {
    this.#table = new DeliveryTable(database);
    this.#logger = logger;
    this.#options = options;
    this.#rejected = new Ring(options.keep);
    this.#waiting = new WaitingDeliveries(options.keep);
  }

  record(record: DeliveryRecord): void {
    if (record.status === "rejected") {
      this.#rejected.push(record);
      return;
    }
    const isKept = (record.body?.length ?? 0) <= MAX_KEPT_BODY_BYTES;
    this.#waiting.push(isKept ? record : { ...record, body: null });
    if (this.#timer === undefined) this.#flushIn(this.#isBusy ? FLUSH_AFTER_MS_WHEN_BUSY : FLUSH_AFTER_MS);
  }

  /** Resolves when everything recorded before is stored, or is sure to be tried again. Never rejects. */
  flush(): Promise<void> {
    if (this.#isPausing) return this.#writing;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const fresh = this.#waiting.drain();
    this.#isBusy = fresh.length === this.#options.keep;
    const records = this.#keepNewest([...this.#unwritten, ...fresh]);
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
  ): Promise<DeliveryPage> {
    await this.flush();
    const stored =
      filter.status === "rejected" ? [] : await this.#table.before(accountId, filter, cursor, limit + 1);
    const inMemory = this.#inMemory(accountId, filter).filter(
      ({ id }) => cursor === undefined || id < cursor,
    );
    const records = [...stored, ...inMemory].sort((a, b) => (a.id < b.id ? 1 : -1));
    const page = records.slice(0, limit);
    return { records: page, next: records.length > limit ? (page.at(-1)?.id ?? null) : null };
  }

  /** Oldest first, after `after`: what came since. */
  async since(
    accountId: string,
    filter: DeliveryFilter,
    after: string,
    limit: number,
  ): Promise<readonly DeliveryRecord[]> {
    await this.flush();
    const stored =
      filter.status === "rejected" ? [] : await this.#table.after(accountId, filter, after, limit);
    const inMemory = this.#inMemory(accountId, filter).filter(({ id }) => id > after);
    return [...stored, ...inMemory].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  async find(accountId: string, id: string): Promise<DeliveryRecord | undefined> {
    await this.flush();
    const isIt = (record: DeliveryRecord) => record.id === id && record.accountId === accountId;
    return (
      this.#rejected.toArray().find(isIt) ??
      this.#takeUnwritten().find(isIt) ??
      (await this.#table.find(accountId, id))
    );
  }

  /** Tries once more; what cannot be written now is lost with the process. */
  async close(): Promise<void> {
    this.#isPausing = false;
    await this.flush();
    clearTimeout(this.#timer);
    if (this.#unwritten.length > 0) this.#options.onDropped(this.#unwritten.length);
  }

  #inMemory(accountId: string, filter: DeliveryFilter): DeliveryRecord[] {
    return [
      ...this.#rejected.toArray(),
      ...this.#takeUnwritten().map((record) => ({ ...record, body: null })),
    ].filter((record) => record.accountId === accountId && matches(record, filter));
  }

  /** What a read must not miss while writing is at rest. */
  #takeUnwritten(): readonly DeliveryRecord[] {
    if (this.#isPausing) this.#unwritten = this.#keepNewest([...this.#unwritten, ...this.#waiting.drain()]);
    return this.#unwritten;
  }

  #keepNewest(records: DeliveryRecord[]): DeliveryRecord[] {
    const surplus = records.length - this.#options.keep;
    if (surplus <= 0) return records;
    // No more than are kept ever wait, so there are too many only when a write has failed.
    this.#options.onDropped(surplus);
    return records.slice(surplus);
  }

  async #write(records: readonly DeliveryRecord[]): Promise<void> {
    let written = 0;
    try {
      while (written < records.length) {
        const next = written + ROWS_PER_WRITE;
        await this.#table.insert(records.slice(written, next), this.#options.keep);
        written = next;
      }
      if (this.#lastPauseMs > 0) this.#logger.info({}, "deliveries are listed again");
      this.#lastPauseMs = 0;
    } catch (error) {
      if (this.#lastPauseMs === 0)
        this.#logger.error({ err: error }, "deliveries cannot be listed; they wait, and are tried again");
      this.#unwritten = this.#keepNewest([...records.slice(written), ...this.#unwritten]);
      this.#lastPauseMs = Math.min(Math.max(MIN_PAUSE_MS, this.#lastPauseMs * 2), MAX_PAUSE_MS);
      this.#isPausing = true;
      this.#flushIn(this.#lastPauseMs);
    }
  }

  #flushIn(delayMs: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.#isPausing = false;
      // It never rejects.
      void this.flush();
    }, delayMs).unref();
  }
}
