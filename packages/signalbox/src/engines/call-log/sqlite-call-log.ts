/**
 * The call log on SQLite: a bounded queue in the main thread, a thread that writes day files, and a thread that reads them.
 * See docs/decisions/0015.
 */
import { mkdirSync } from "node:fs";
import type { Worker } from "node:worker_threads";
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
import { asError, CallQueue, type CallQueueOptions, toRef } from "./call-queue.ts";
import { listDays } from "./day-files.ts";
import { ReaderThread } from "./reader-thread.ts";
import type { CallDeletion, CallPageRequest, CallRanges, CallSelection } from "./selection.ts";
import type { UsageFigures, UsageQuery } from "./usage.ts";
import type { WriterOptions } from "./worker-messages.ts";
import { startWorker } from "./worker-requests.ts";

const EXPIRY_INTERVAL_MS = 3_600_000;

export interface SqliteCallLogOptions extends CallQueueOptions {
  /** Folder of the day files; created if needed. */
  readonly folder: string;
  readonly maxAgeDays: number;
  readonly maxBodyBytes: number;
  /** Of all day files; the oldest bodies are removed first, then the oldest rows. */
  readonly maxTotalBytes: number;
  readonly clock?: Clock;
  /** For tests that end the thread. */
  readonly startWriter?: (options: WriterOptions) => Worker;
}

export class SqliteCallLog implements CallLog {
  readonly #options: SqliteCallLogOptions;
  readonly #clock: Clock;
  readonly #queue: CallQueue;
  readonly #reader: ReaderThread;
  readonly #expiry: Repetition;
  #unreadableDays: readonly string[] = [];
  #closed: Promise<void> | null = null;

  private constructor(options: SqliteCallLogOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#reader = new ReaderThread(options.folder);
    this.#queue = new CallQueue(options, {
      startWriter: (flushIntervalMs) => startWriter(options, flushIntervalMs),
      silenceReason: "the disk does not respond",
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
      log.#queue.replaceWhenDead();
      return log;
    } catch (cause) {
      await log.#expiry.stop();
      await log.#queue.terminate();
      throw new DataFolderError(`cannot open the call log in ${options.folder}: ${asError(cause).message}`, {
        cause,
      });
    }
  }

  get queuedCalls(): number {
    return this.#queue.queuedCalls;
  }

  get droppedCalls(): number {
    return this.#queue.droppedCalls;
  }

  get problem(): string | null {
    return this.#queue.problem;
  }

  get unreadableDays(): readonly string[] {
    return this.#unreadableDays;
  }

  get size(): CallLogSize {
    return this.#queue.size;
  }

  get hasRoom(): boolean {
    return this.#queue.hasRoom;
  }

  whenRoom(): Promise<void> {
    return this.#queue.whenRoom();
  }

  record(call: CallRecord): void {
    if (this.#closed !== null) throw new Error("the call log is closed");
    this.#queue.record(call);
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
    this.#queue.setQuota(gateway, quota);
  }

  async dropGateway(gateway: GatewayRef): Promise<void> {
    this.#queue.forgetQuota(gateway);
    await this.#change("dropGateway", toRef(gateway));
  }

  /** Removes expired days; runs every hour. */
  async expire(): Promise<void> {
    const { folder, maxAgeDays, onError } = this.#options;
    if (!this.#queue.isWriterStarted && listDays(folder).length === 0) return;
    const unreadable = await this.#queue.request<string[]>("expire", this.#clock.now(), maxAgeDays);
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
    await this.#reader.close();
    await this.#queue.close();
  }

  async #read<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    return this.#reader.request<T>(method, ...args);
  }

  async #change<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    await this.#whenCommitted();
    return this.#queue.request<T>(method, ...args);
  }

  async #whenCommitted(): Promise<void> {
    if (this.#closed !== null && this.#queue.failure === null) throw new Error("the call log is closed");
    await this.#queue.whenCommitted();
  }
}

function startWriter(options: SqliteCallLogOptions, flushIntervalMs: number): Worker {
  const { folder, maxBodyBytes, maxTotalBytes } = options;
  const writerOptions: WriterOptions = { folder, maxBodyBytes, maxTotalBytes, flushIntervalMs };
  return options.startWriter === undefined
    ? startWorker("call-writer", import.meta.url, writerOptions)
    : options.startWriter(writerOptions);
}
