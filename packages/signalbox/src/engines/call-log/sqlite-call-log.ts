/**
 * The call log on SQLite: a bounded queue in the main thread, a thread that writes day files, and a thread that reads them.
 * See docs/decisions/0015.
 */
import { mkdirSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import { type Clock, systemClock } from "../../core/clock.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { isUlid } from "../../core/ulid.ts";
import type {
  BodySide,
  CallLog,
  CallLogSize,
  CallPage,
  CallPatch,
  CallQuota,
  CallRecord,
  CallRow,
  GatewayRef,
  StoredBody,
} from "./call-log.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "./call-scan.ts";
import { listDays } from "./day-files.ts";
import { QueueRoom } from "./row-queue.ts";
import { ReaderThread } from "./reader-thread.ts";
import type { CallDeletion, CallPageRequest, CallRanges, CallSelection } from "./selection.ts";
import type { RemovedForSize } from "./size-limit.ts";
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
import { MAX_SEND_DELAY_MS, WriterThread } from "./writer-thread.ts";

const EXPIRY_INTERVAL_MS = 3_600_000;

export interface SqliteCallLogOptions {
  /** Folder of the day files; created if needed. */
  readonly folder: string;
  readonly maxAgeDays: number;
  /** How long a row may wait until it is committed. */
  readonly flushIntervalMs: number;
  readonly maxBodyBytes: number;
  /** Of all day files; the oldest bodies are removed first, then the oldest rows. */
  readonly maxTotalBytes: number;
  readonly maxQueuedCalls: number;
  readonly maxQueuedBytes: number;
  readonly clock?: Clock;
  /** A failure that does not stop the log: a commit that is retried, a writer that was replaced, a file that cannot be read. */
  readonly onError: (error: Error) => void;
  /** Rows are written again after a stall; `droppedCalls` were dropped during the stall. */
  readonly onRecovery?: (droppedCalls: number) => void;
  /** The size limit has removed something for the first time since the start. */
  readonly onTrimmed?: () => void;
  /** Rows can no longer be written; must end the process. */
  readonly onFatal: (error: Error) => void;
  /** For tests that end the thread. */
  readonly startWriter?: (options: WriterOptions) => Worker;
}

export class SqliteCallLog implements CallLog {
  readonly #options: SqliteCallLogOptions;
  readonly #clock: Clock;
  readonly #writer: WriterThread;
  readonly #reader: ReaderThread;
  readonly #room: QueueRoom;
  readonly #expiry: Repetition;
  #size: CallLogSize = { bytes: 0, bodiesRemoved: 0, rowsRemoved: 0 };
  #unreadableDays: readonly string[] = [];
  #closed: Promise<void> | null = null;

  private constructor(options: SqliteCallLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#reader = new ReaderThread(options.folder);
    this.#writer = this.#createWriter();
    this.#room = new QueueRoom({
      free: () => this.#freeRows(),
      onStall: options.onError,
      onRecovery: (dropped) => options.onRecovery?.(dropped),
    });
    this.#expiry = repeat(
      EXPIRY_INTERVAL_MS,
      () => this.expire(),
      (error) => options.onError(asError(error)),
    );
  }

  /** Resolves when the day files could be opened and expired days are removed. */
  static async open(options: SqliteCallLogOptions): Promise<SqliteCallLog> {
    const log = new SqliteCallLog(options);
    try {
      mkdirSync(options.folder, { recursive: true, mode: 0o700 });
      await log.expire();
      log.#writer.replaceWhenDead();
      return log;
    } catch (cause) {
      await log.#expiry.stop();
      await log.#writer.terminate();
      throw new DataFolderError(`cannot open the call log in ${options.folder}: ${asError(cause).message}`, {
        cause,
      });
    }
  }

  get queuedCalls(): number {
    return this.#writer.queuedCalls;
  }

  get droppedCalls(): number {
    return this.#room.dropped;
  }

  get problem(): string | null {
    return this.#room.stall;
  }

  get unreadableDays(): readonly string[] {
    return this.#unreadableDays;
  }

  get size(): CallLogSize {
    return this.#size;
  }

  get hasRoom(): boolean {
    return this.#room.isOpen && this.#writer.failure === null;
  }

  whenRoom(): Promise<void> {
    const { failure } = this.#writer;
    return failure === null ? this.#room.wait() : Promise.reject(failure);
  }

  record(call: CallRecord): void {
    if (this.#closed !== null) throw new Error("the call log is closed");
    if (!isUlid(call.id)) throw new TypeError(`the id of a call must be a ULID, found ${call.id}`);
    if (this.#room.admits()) this.#writer.add(call);
  }

  async list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage> {
    return this.#read("list", toRef(gateway), page);
  }

  async ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges> {
    return this.#read("ranges", toRef(gateway), selection);
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

  async summariseBy(query: UsageByQuery): Promise<UsageBy> {
    const totals = new UsageByTotals(query.maxValues);
    let cursor: string | null = null;
    let rows = 0;
    for (;;) {
      const part: UsageByPart = await this.#read("summariseBy", query, cursor);
      totals.addPart(part);
      rows += part.rows;
      cursor = part.next;
      if (cursor === null) return totals.finish(null);
      if (rows >= MAX_ROWS_READ) return totals.finish(part.countedFrom);
    }
  }

  async scan(scan: CallScan): Promise<CallSlice> {
    return this.#read("scan", scan);
  }

  async storedAfter(position: string | null, limit: number): Promise<StoredCalls> {
    return this.#read("storedAfter", position, limit);
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
    const ids = await this.#read<string[]>("select", ref, selection, { orderBy, direction }, limit);
    return this.#change("deleteIds", ref, ids);
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    this.#writer.setQuota(toRef(gateway), quota);
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.#writer.forgetQuota(gateway);
    await this.#change("dropGateway", toRef(gateway));
  }

  /** Removes expired days; runs every hour. */
  async expire(): Promise<void> {
    const { folder, maxAgeDays, onError } = this.#options;
    if (!this.#writer.isStarted && listDays(folder).length === 0) return;
    const unreadable = await this.#writer.request<string[]>("expire", this.#clock.now(), maxAgeDays);
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

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // Not awaited: an expiry may wait for the writer, which ends below.
    void this.#expiry.stop();
    this.#room.close();
    await this.#reader.close();
    try {
      await this.#writer.close();
    } catch (cause) {
      throw new Error(`${this.queuedCalls} calls could not be written to the log before it closed`, {
        cause,
      });
    }
  }

  async #read<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    return this.#reader.request<T>(method, ...args);
  }

  async #change<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    return this.#writer.request<T>(method, ...args);
  }

  async #whenCommitted(): Promise<void> {
    if (this.#closed !== null && this.#writer.failure === null) throw new Error("the call log is closed");
    await this.#writer.whenCommitted();
  }

  #createWriter(): WriterThread {
    const { folder, maxBodyBytes, maxTotalBytes, flushIntervalMs, onError, onFatal } = this.#options;
    const start =
      this.#options.startWriter ??
      ((options: WriterOptions) => startWorker("call-writer", import.meta.url, options));
    // A row waits in this thread and then in the writer's; together that is the flush interval.
    const sendDelayMs = Math.min(MAX_SEND_DELAY_MS, Math.floor(flushIntervalMs / 2));
    const options = { folder, maxBodyBytes, maxTotalBytes, flushIntervalMs: flushIntervalMs - sendDelayMs };
    return new WriterThread({
      sendDelayMs,
      start: () => start(options),
      onCommitted: () => this.#room.committed(),
      onFailed: (reason) => this.#failed(reason),
      onSize: (bytes, removed) => this.#resized(bytes, removed),
      onReplaced: onError,
      onFatal,
    });
  }

  #failed(reason: string): Error {
    const cause = this.#room.failed(reason);
    const message = "The log cannot be read until the calls that wait for it are written";
    return new SignalboxError("storage_unavailable", { message, cause });
  }

  #resized(bytes: number, { bodies, rows }: RemovedForSize): void {
    const { bodiesRemoved, rowsRemoved } = this.#size;
    const isFirst = bodiesRemoved + rowsRemoved === 0 && bodies + rows > 0;
    this.#size = { bytes, bodiesRemoved: bodiesRemoved + bodies, rowsRemoved: rowsRemoved + rows };
    if (isFirst) this.#options.onTrimmed?.();
  }

  #freeRows(): number {
    const { maxQueuedBytes, maxQueuedCalls } = this.#options;
    if (this.#writer.queuedBytes >= maxQueuedBytes) return 0;
    return Math.max(0, maxQueuedCalls - this.#writer.queuedCalls);
  }
}

/** The caller's object may have more properties, which would be copied to the other thread. */
function toRef({ accountId, gatewayId }: GatewayRef): GatewayRef {
  return { accountId, gatewayId };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
