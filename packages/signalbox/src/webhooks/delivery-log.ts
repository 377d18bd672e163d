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
 */
import type { Database } from "../storage/ports/database.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { DeliveryFilter, DeliveryRecord } from "./delivery-record.ts";
import { matches } from "./delivery-record.ts";
import { DeliveryTable } from "./delivery-table.ts";
import { Ring } from "./ring.ts";
import { WaitingDeliveries } from "./waiting-deliveries.ts";

const FLUSH_AFTER_MS = 1000;
/** When more have come than are kept: each write then replaces the whole list, which is of no use to anybody every second. */
const FLUSH_AFTER_MS_WHEN_BUSY = 5000;
/** Rows a transaction: short enough (a few milliseconds) that no request notices. */
const ROWS_PER_WRITE = 100;
/** Larger bodies are listed but not kept. */
const MAX_KEPT_BODY_BYTES = 256 * 1024;

export interface DeliveryPage {
  readonly records: readonly DeliveryRecord[];
  /** Continue here; null at the end. */
  readonly next: string | null;
}

export class DeliveryLog {
  readonly #table: DeliveryTable;
  readonly #logger: Logger;
  readonly #keep: number;
  readonly #rejected: Ring<DeliveryRecord>;
  readonly #waiting: WaitingDeliveries;
  #isBusy = false;
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();

  constructor(database: Database, logger: Logger, keep: number) {
    this.#table = new DeliveryTable(database);
    this.#logger = logger;
    this.#keep = keep;
    this.#rejected = new Ring(keep);
    this.#waiting = new WaitingDeliveries(keep);
  }

  record(record: DeliveryRecord): void {
    if (record.status === "rejected") {
      this.#rejected.push(record);
      return;
    }
    const isKept = (record.body?.length ?? 0) <= MAX_KEPT_BODY_BYTES;
    this.#waiting.push(isKept ? record : { ...record, body: null });
    // It never rejects: a failure is logged.
    this.#timer ??= setTimeout(
      () => void this.flush(),
      this.#isBusy ? FLUSH_AFTER_MS_WHEN_BUSY : FLUSH_AFTER_MS,
    ).unref();
  }

  /** Resolves when everything recorded before is stored. A failure is logged and costs the listing, nothing else. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const records = this.#waiting.drain();
    this.#isBusy = records.length === this.#keep;
    if (records.length > 0) {
      this.#writing = this.#writing
        .then(() => this.#write(records))
        .catch((error: unknown) => this.#logger.error({ err: error }, "deliveries could not be listed"));
    }
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
    const refused = this.#refused(accountId, filter).filter(({ id }) => cursor === undefined || id < cursor);
    const records = [...stored, ...refused].sort((a, b) => (a.id < b.id ? 1 : -1));
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
    const refused = this.#refused(accountId, filter).filter(({ id }) => id > after);
    return [...stored, ...refused].sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  async find(accountId: string, id: string): Promise<DeliveryRecord | undefined> {
    await this.flush();
    return (
      this.#rejected.toArray().find((record) => record.id === id && record.accountId === accountId) ??
      (await this.#table.find(accountId, id))
    );
  }

  async close(): Promise<void> {
    await this.flush();
  }

  #refused(accountId: string, filter: DeliveryFilter): DeliveryRecord[] {
    return this.#rejected
      .toArray()
      .filter((record) => record.accountId === accountId && matches(record, filter));
  }

  async #write(records: readonly DeliveryRecord[]): Promise<void> {
    for (let at = 0; at < records.length; at += ROWS_PER_WRITE) {
      await this.#table.insert(records.slice(at, at + ROWS_PER_WRITE));
    }
    await this.#table.prune(this.#keep);
  }
}
