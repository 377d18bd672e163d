/**
 * The call log on SQLite: a bounded queue on the main thread, one thread that writes day files, one that reads them.
 *
 *   record ─► #queue ──every few ms──► writer's thread ──each flush interval──► calls-2026-11-15.db
 *                ▲                          │
 *                └──────── committed ───────┘
 *
 * Invariants (beside those of the port):
 * 1. A row leaves `#queue` only when the writer said it is committed. If its thread dies, a new one gets the rows again;
 *    rows that were committed unnoticed are recognised by their ids.
 * 2. A thread that dies twice without having committed anything ends the process through `onFatal`: the cause is not going away.
 * 3. Positions count records; a read waits until the position at its call is committed.
 * 4. While the log is stalled (`QueueRoom`), reads and changes fail instead of waiting.
 */
import { mkdirSync } from "node:fs";
import type { Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import { type Clock, systemClock } from "../../core/clock.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { isUlid } from "../../core/ulid.ts";
import type {
  BodySide,
  CallDeletion,
  CallLog,
  CallLogSize,
  CallPage,
  CallPageRequest,
  CallPatch,
  CallQuota,
  CallRanges,
  CallRecord,
  CallRow,
  CallSelection,
  GatewayRef,
  StoredBody,
  UsageFigures,
  UsageQuery,
} from "./call-log.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { listDays } from "./day-files.ts";
import type { Answer, WriterMessage, WriterOptions, WriterReport } from "./worker-messages.ts";
import { Questions, startWorker } from "./worker-requests.ts";
import { QueueRoom } from "./queue-room.ts";
import { type QueuedBatch, RowQueue } from "./row-queue.ts";
import type { RemovedForSize } from "./size-limit.ts";

/** Rows are handed over together: a message wakes the other thread, which costs more than a dozen rows. */
const MAX_HAND_OVER_MS = 20;
/** So many are not left waiting for the time to pass. */
const HAND_OVER_ROWS = 512;
const EXPIRY_INTERVAL_MS = 3_600_000;

export interface SqliteCallLogOptions {
  /** Folder of the day files; created if needed. */
  readonly folder: string;
  readonly maxAgeDays: number;
  readonly flushIntervalMs: number;
  readonly maxBodyBytes: number;
  /** Of all day files; the oldest bodies go first, then the oldest rows. */
  readonly maxTotalBytes: number;
  readonly maxQueuedCalls: number;
  readonly maxQueuedBytes: number;
  readonly clock?: Clock;
  /** Something went wrong that is being tried again. */
  readonly onError: (error: Error) => void;
  /** Rows are written again after the log was stalled; so many were dropped. */
  readonly onRecovery?: (droppedCalls: number) => void;
  /** The log has reached its size: something was removed for the first time since the start. */
  readonly onTrimmed?: () => void;
  /** Rows can no longer be written; must end the process. */
  readonly onFatal: (error: Error) => void;
  /** Tests keep a hand on the thread. */
  readonly startWriter?: (options: WriterOptions) => Worker;
}

interface Thread {
  readonly worker: Worker;
  readonly questions: Questions;
}

interface PositionWaiter {
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class SqliteCallLog implements CallLog {
  readonly #options: SqliteCallLogOptions;
  readonly #clock: Clock;
  readonly #quotas = new Map<string, { gateway: GatewayRef; quota: CallQuota }>();
  readonly #expiry: Repetition;
  readonly #handOverMs: number;
  /** Started with the first thing to do, as the reader: an installation without calls pays for neither. */
  #writer: Thread | null = null;
  #reader: Thread | null = null;
  readonly #queue = new RowQueue();
  /** Position of the last row that the writer was given. */
  #handedOver = 0;
  #handOverTimer: NodeJS.Timeout | undefined;
  readonly #room: QueueRoom;
  #positionWaiters: PositionWaiter[] = [];
  #hasWriterCommitted = true;
  #size: CallLogSize = { bytes: 0, bodiesRemoved: 0, rowsRemoved: 0 };
  #isOpen = false;
  #failure: Error | null = null;
  #closed: Promise<void> | null = null;

  private constructor(options: SqliteCallLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#handOverMs = Math.min(MAX_HAND_OVER_MS, Math.floor(options.flushIntervalMs / 2));
    this.#room = new QueueRoom({
      free: () =>
        this.#queue.bodyBytes < options.maxQueuedBytes
          ? Math.max(0, options.maxQueuedCalls - this.#queue.length)
          : 0,
      onStall: options.onError,
      onRecovery: (dropped) => options.onRecovery?.(dropped),
    });
    this.#expiry = repeat(
      EXPIRY_INTERVAL_MS,
      () => this.expire(),
      (error) => options.onError(asError(error)),
    );
  }

  /** Resolves when the day files are open and those past their age are gone. */
  static async open(options: SqliteCallLogOptions): Promise<SqliteCallLog> {
    const log = new SqliteCallLog(options);
    try {
      mkdirSync(options.folder, { recursive: true, mode: 0o700 });
      await log.expire();
      log.#isOpen = true;
      return log;
    } catch (cause) {
      await log.#expiry.stop();
      await log.#writer?.worker.terminate();
      throw new DataFolderError(`cannot open the call log in ${options.folder}: ${asError(cause).message}`, {
        cause,
      });
    }
  }

  /** Records that are not on stable storage yet. */
  get queuedCalls(): number {
    return this.#queue.length;
  }

  /** Records that were dropped because the log was stalled and its queue full. */
  get droppedCalls(): number {
    return this.#room.dropped;
  }

  get problem(): string | null {
    return this.#room.stall;
  }

  get size(): CallLogSize {
    return this.#size;
  }

  get hasRoom(): boolean {
    return this.#room.isOpen && this.#failure === null;
  }

  whenRoom(): Promise<void> {
    return this.#failure === null ? this.#room.wait() : Promise.reject(this.#failure);
  }

  record(call: CallRecord): void {
    if (this.#closed !== null) throw new Error("the call log is closed");
    if (!isUlid(call.id)) throw new TypeError(`a call's id must be a ULID, found ${call.id}`);
    if (!this.#room.admits()) return;
    this.#queue.add(call);
    if (this.#queue.added - this.#handedOver >= HAND_OVER_ROWS) this.#handOver();
    else this.#handOverTimer ??= setTimeout(() => this.#handOver(), this.#handOverMs);
  }

  async list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage> {
    return this.#read("list", ref(gateway), page);
  }

  async ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges> {
    return this.#read("ranges", ref(gateway), selection);
  }

  async get(gateway: GatewayRef, id: string): Promise<CallRow | null> {
    return isUlid(id) ? this.#read("get", ref(gateway), id) : null;
  }

  async body(
    gateway: GatewayRef,
    id: string,
    side: BodySide,
    maxBytes = Number.POSITIVE_INFINITY,
  ): Promise<StoredBody | null> {
    return isUlid(id) ? this.#read("body", ref(gateway), id, side, maxBytes) : null;
  }

  async summarise(query: UsageQuery): Promise<UsageFigures[]> {
    return this.#read("summarise", query);
  }

  async edit(gateway: GatewayRef, id: string, patch: CallPatch): Promise<boolean> {
    return isUlid(id) ? this.#change("edit", ref(gateway), id, patch) : false;
  }

  async delete(gateway: GatewayRef, deletion: CallDeletion): Promise<number> {
    const { limit, orderBy, direction, ...selection } = deletion;
    if (limit === null) return this.#change("deleteMatching", ref(gateway), selection);
    const ids = await this.#read<string[]>("select", ref(gateway), selection, { orderBy, direction }, limit);
    return this.#change("deleteIds", ref(gateway), ids);
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    const key = `${gateway.accountId}\n${gateway.gatewayId}`;
    if (quota === null && !this.#quotas.has(key)) return;
    if (quota === null) this.#quotas.delete(key);
    else this.#quotas.set(key, { gateway: ref(gateway), quota });
    if (this.#writer === null && this.#queue.length === 0) return;
    this.#handOver();
    this.#post({ kind: "quota", gateway: ref(gateway), quota });
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.#quotas.delete(`${gateway.accountId}\n${gateway.gatewayId}`);
    await this.#change("dropGateway", ref(gateway));
  }

  /** Removes the days past their age; also runs by itself every hour. */
  async expire(): Promise<void> {
    if (this.#writer === null && listDays(this.#options.folder).length === 0) return;
    await this.#writing.questions.ask("expire", this.#clock.now(), this.#options.maxAgeDays);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // Not waited for: it may wait for the writer, which ends below.
    void this.#expiry.stop();
    this.#room.close();
    this.#handOver();
    if (this.#reader !== null) {
      // It writes nothing, so nothing is lost with it.
      await this.#reader.questions.ask("close").catch(() => undefined);
      await this.#reader.worker.terminate();
    }
    try {
      if (this.#failure !== null) throw this.#failure;
      await this.#writer?.questions.ask("close");
    } catch (cause) {
      const count = this.queuedCalls;
      throw new Error(`${count} calls could not be written to the log before it closed`, { cause });
    } finally {
      await this.#writer?.worker.terminate();
    }
  }

  async #read<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    this.#reader ??= this.#startReader();
    return this.#reader.questions.ask<T>(method, ...args);
  }

  async #change<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    return this.#writing.questions.ask<T>(method, ...args);
  }

  /** Resolves when everything recorded before the call is committed. */
  #whenCommitted(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure);
    if (this.#closed !== null) return Promise.reject(new Error("the call log is closed"));
    if (this.#queue.length === 0) return Promise.resolve();
    this.#handOver();
    this.#post({ kind: "flush" });
    const position = this.#queue.added;
    return new Promise((resolve, reject) => this.#positionWaiters.push({ position, resolve, reject }));
  }

  #handOver(): void {
    clearTimeout(this.#handOverTimer);
    this.#handOverTimer = undefined;
    this.#handedOver = this.#queue.added;
    for (const queued of this.#queue.takeBatches()) this.#send(queued);
  }

  #send({ batch, bodyBytes, upTo }: QueuedBatch): void {
    this.#post({ kind: "rows", batch, bodyBytes, upTo });
  }

  #post(message: WriterMessage): void {
    this.#writing.worker.postMessage(message);
  }

  get #writing(): Thread {
    return (this.#writer ??= this.#startWriter());
  }

  #startWriter(): Thread {
    const { folder, maxBodyBytes, maxTotalBytes, flushIntervalMs } = this.#options;
    let before: RemovedForSize = { bodies: 0, rows: 0 };
    const start =
      this.#options.startWriter ??
      ((options: WriterOptions) => startWorker("call-writer", import.meta.url, options));
    // The two waits of a row together are the interval that was asked for.
    const worker = start({
      folder,
      maxBodyBytes,
      maxTotalBytes,
      flushIntervalMs: flushIntervalMs - this.#handOverMs,
    });
    const questions = new Questions((question) => worker.postMessage(question));
    let cause: Error | undefined;
    worker.on("message", (report: WriterReport) => {
      if (report.kind !== "size") return this.#takeReport(report);
      // A thread counts from its own start.
      const bodies = report.removed.bodies - before.bodies;
      this.#takeSize(report.bytes, bodies, report.removed.rows - before.rows);
      before = report.removed;
    });
    worker.on("error", (error: Error) => (cause = error));
    worker.on("exit", () => {
      const error = new Error("the call log's writer ended unexpectedly", { cause });
      questions.fail(cause ?? error);
      if (this.#isOpen && this.#closed === null) this.#replaceWriter(error);
    });
    for (const { gateway, quota } of this.#quotas.values())
      worker.postMessage({ kind: "quota", gateway, quota } satisfies WriterMessage);
    return { worker, questions };
  }

  #takeSize(bytes: number, bodies: number, rows: number): void {
    const { bodiesRemoved, rowsRemoved } = this.#size;
    const isFirst = bodiesRemoved + rowsRemoved === 0 && bodies + rows > 0;
    this.#size = { bytes, bodiesRemoved: bodiesRemoved + bodies, rowsRemoved: rowsRemoved + rows };
    if (isFirst) this.#options.onTrimmed?.();
  }

  #takeReport(report: Exclude<WriterReport, { kind: "size" }>): void {
    if (report.kind === "committed") this.#takeCommit(report.upTo);
    else if (report.kind === "failed") {
      const cause = this.#room.stalled(report.message);
      const message = "The log cannot be read until the calls that wait for it are written";
      this.#failPositionWaiters(new SignalboxError("storage_unavailable", { message, cause }));
    } else this.#writer?.questions.take(report);
  }

  #takeCommit(upTo: number): void {
    this.#hasWriterCommitted = true;
    this.#queue.release(upTo);
    const waiters = this.#positionWaiters;
    this.#positionWaiters = waiters.filter((waiter) => waiter.position > upTo);
    for (const waiter of waiters) if (waiter.position <= upTo) waiter.resolve();
    this.#room.committed();
  }

  #replaceWriter(error: Error): void {
    this.#failPositionWaiters(error);
    if (!this.#hasWriterCommitted) {
      this.#failure = error;
      this.#options.onFatal(error);
      return;
    }
    this.#options.onError(error);
    this.#hasWriterCommitted = false;
    this.#writer = this.#startWriter();
    for (const queued of this.#queue.unreleased) this.#send(queued);
  }

  #failPositionWaiters(error: Error): void {
    const waiters = this.#positionWaiters;
    this.#positionWaiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }

  #startReader(): Thread {
    const worker = startWorker("call-reader", import.meta.url, { folder: this.#options.folder });
    const questions = new Questions((question) => worker.postMessage(question));
    let cause: Error | undefined;
    worker.on("message", (answer: Answer) => questions.take(answer));
    worker.on("error", (error: Error) => (cause = error));
    worker.on("exit", () => {
      questions.fail(cause ?? new Error("the call log's reader ended unexpectedly"));
      if (this.#reader?.worker === worker) this.#reader = null;
    });
    return { worker, questions };
  }
}

/** Only the two names cross to the other thread, whatever object the caller has at hand. */
function ref({ accountId, gatewayId }: GatewayRef): GatewayRef {
  return { accountId, gatewayId };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
