/**
 * The call log on SQLite: a bounded queue in the main thread, a thread that writes day files, and threads that read them.
 * See docs/decisions/0015.
 */
import { mkdirSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { type Clock, systemClock } from "../../core/clock.ts";
import { isUlid } from "../../core/ulid.ts";
import type { BodySide, CallLog, CallPage, CallPatch, CallRow, GatewayRef, StoredBody } from "./call-log.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "./call-scan.ts";
import { listDays } from "./day-files.ts";
import { QueuedCallLog, type QueuedCallLogOptions, toRef } from "./queued-call-log.ts";
import { ReaderThreads } from "./reader-thread.ts";
import type { CallDeletion, CallPageRequest, CallRanges, CallSelection } from "./selection.ts";
import { isPageByTime, isPageOfAll } from "./quick-read.ts";
import type { UsageFigures, UsageQuery } from "./usage.ts";
import {
  MAX_ROWS_READ,
  type UsageBy,
  type UsageByPart,
  type UsageByQuery,
  UsageByTotals,
} from "./usage-by.ts";
import type { WriterOptions } from "./worker-messages.ts";
import { startWorker } from "./worker-requests.ts";

export interface SqliteCallLogOptions extends QueuedCallLogOptions {
  /** Folder of the day files; created if needed. */
  readonly folder: string;
  readonly maxAgeDays: number;
  readonly maxBodyBytes: number;
  /** Of all day files; the oldest bodies are removed first, then the oldest rows. */
  readonly maxTotalBytes: number;
  /** Keeps totals by token and metadata; switched on later, they are rebuilt from the rows. Default true. */
  readonly usageTotals?: boolean;
  readonly clock?: Clock;
  /** For tests that end the thread. */
  readonly startWriter?: (options: WriterOptions) => Worker;
}

export class SqliteCallLog extends QueuedCallLog implements CallLog {
  readonly #options: SqliteCallLogOptions;
  readonly #clock: Clock;
  readonly #readers: ReaderThreads;
  #unreadableDays: readonly string[] = [];

  private constructor(options: SqliteCallLogOptions) {
    super(options, {
      startWriter: (flushIntervalMs) => startWriter(options, flushIntervalMs),
      silenceReason: "the disk does not respond",
    });
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#readers = new ReaderThreads(options.folder);
  }

  /** Resolves when the day files could be opened and expired days are removed. */
  static async open(options: SqliteCallLogOptions): Promise<SqliteCallLog> {
    const { folder } = options;
    const log = new SqliteCallLog(options);
    await log.begin(folder, () => void mkdirSync(folder, { recursive: true, mode: 0o700 }));
    return log;
  }

  get unreadableDays(): readonly string[] {
    return this.#unreadableDays;
  }

  async list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage> {
    const ref = toRef(gateway);
    return isPageByTime(page) ? this.#read("list", ref, page) : this.#search("list", ref, page);
  }

  async ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges> {
    return this.#search("ranges", toRef(gateway), selection);
  }

  async get(gateway: GatewayRef, id: string): Promise<CallRow | null> {
    return isUlid(id) ? this.#read("get", toRef(gateway), id) : null;
  }

  async body(
    gateway: GatewayRef,
    id: string,
    side: BodySide,
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<StoredBody | null> {
    return isUlid(id) ? this.#read("body", toRef(gateway), id, side, maxBytes) : null;
  }

  async summarise(query: UsageQuery): Promise<UsageFigures[]> {
    return this.#read("summarise", query);
  }

  async summariseBy(query: UsageByQuery, signal?: AbortSignal): Promise<UsageBy> {
    const kept = await this.#search<UsageBy | null>("summariseTotals", query);
    if (kept !== null) return kept;
    const totals = new UsageByTotals(query.maxValues);
    let cursor: string | null = null;
    let rows = 0;
    for (;;) {
      signal?.throwIfAborted();
      const part: UsageByPart = await this.#search("summariseBy", query, cursor);
      totals.addPart(part);
      rows += part.rows;
      cursor = part.next;
      if (cursor === null) return totals.finish(null);
      if (rows >= MAX_ROWS_READ) return totals.finish(part.countedFrom);
    }
  }

  async scan(scan: CallScan): Promise<CallSlice> {
    return isPageOfAll(scan) ? this.#read("scan", scan) : this.#search("scan", scan);
  }

  async storedAfter(position: string | null, limit: number): Promise<StoredCalls> {
    return this.#search("storedAfter", position, limit);
  }

  async neighbours(gateway: GatewayRef, id: string): Promise<CallNeighbours> {
    return isUlid(id) ? this.#read("neighbours", toRef(gateway), id) : { newer: null, older: null };
  }

  async edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean> {
    return isUlid(id) ? this.#change("edit", toRef(gateway), id, patch) : false;
  }

  async delete(gateway: GatewayRef, deletion: CallDeletion): Promise<number> {
    const { limit, orderBy, direction, ...selection } = deletion;
    const ref = toRef(gateway);
    if (limit === null) return this.#change("deleteMatching", ref, selection);
    const ids = await this.#search<string[]>("select", ref, selection, { orderBy, direction }, limit);
    return this.#change("deleteIds", ref, ids);
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.forgetQuota(gateway);
    await this.#change("dropGateway", toRef(gateway));
  }

  override async expire(): Promise<void> {
    const { folder, maxAgeDays, onError } = this.#options;
    if (!this.isWriterStarted && listDays(folder).length === 0) return;
    const unreadable = await this.request<string[]>("expire", this.#clock.now(), maxAgeDays);
    const isNew = unreadable.some((day) => !this.#unreadableDays.includes(day));
    this.#unreadableDays = unreadable;
    if (isNew) {
      onError(
        new Error(
          `a later release has written the files of these days in ${folder}, so their calls are not shown, changed or added to: ${unreadable.join(", ")}; start that release, or move the files away`,
        ),
      );
    }
  }

  protected override closeReads(): Promise<void> {
    return this.#readers.close();
  }

  /** A read of a bounded number of rows. */
  async #read<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.flush();
    return this.#readers.quick<T>(method, ...args);
  }

  /** A read that may look at many rows. */
  async #search<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.flush();
    return this.#readers.slow<T>(method, ...args);
  }

  async #change<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.flush();
    return this.request<T>(method, ...args);
  }
}

function startWriter(options: SqliteCallLogOptions, flushIntervalMs: number): Worker {
  const { folder, maxBodyBytes, maxTotalBytes, usageTotals = true } = options;
  const writerOptions: WriterOptions = { folder, maxBodyBytes, maxTotalBytes, usageTotals, flushIntervalMs };
  return options.startWriter === undefined
    ? startWorker("call-writer", import.meta.url, writerOptions)
    : options.startWriter(writerOptions);
}
