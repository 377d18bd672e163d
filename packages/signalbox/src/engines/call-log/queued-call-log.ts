/**
 * What every call log does in the main thread: calls wait here until the writer's thread has reported their commit.
 *
 *   record ─► admission (`QueueRoom`) ─► packed rows (`RowQueue`) ─► writer's thread
 *
 * The adapters differ in their writer's thread, reads and changes; admission, limits, stalls, expiry and closing are the same.
 */
import type { Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { isUlid } from "../../core/ulid.ts";
import type { CallLogSize, CallQuota, CallRecord, CallSink, GatewayRef } from "./call-log.ts";
import { QueueRoom } from "./row-queue.ts";
import type { RemovedForSize } from "./worker-messages.ts";
import { MAX_SEND_DELAY_MS, WriterThread } from "./writer-thread.ts";

export interface QueuedCallLogOptions {
  /** How long a row may wait until it is committed. */
  readonly flushIntervalMs: number;
  readonly maxQueuedCalls: number;
  readonly maxQueuedBytes: number;
  /** A failure that does not stop the log: a commit that is retried, a writer that was replaced, a file that cannot be read. */
  readonly onError: (error: Error) => void;
  /** Rows are written again after a stall; `droppedCalls` were dropped during the stall. */
  readonly onRecovery?: (droppedCalls: number) => void;
  /** The size limit has removed something for the first time since the start. */
  readonly onTrimmed?: () => void;
  /** Rows can no longer be written; must end the process. */
  readonly onFatal: (error: Error) => void;
}

export interface WriterOfLog {
  /** Starts the writer's thread, in which a row may wait for `flushIntervalMs`. */
  readonly startWriter: (flushIntervalMs: number) => Worker;
  /** The reason of a stall in which no commit and no failure is reported. */
  readonly silenceReason: string;
}

const EXPIRY_INTERVAL_MS = 3_600_000;

export abstract class QueuedCallLog implements CallSink {
  readonly #options: QueuedCallLogOptions;
  readonly #writer: WriterThread;
  readonly #room: QueueRoom;
  readonly #expiry: Repetition;
  #size: CallLogSize = { bytes: 0, bodiesRemoved: 0, rowsRemoved: 0 };
  #closed: Promise<void> | null = null;

  constructor(options: QueuedCallLogOptions, writer: WriterOfLog) {
    this.#options = options;
    this.#writer = this.#createWriter(writer);
    this.#room = new QueueRoom({
      free: () => this.#freeRows(),
      silenceReason: writer.silenceReason,
      onStall: options.onError,
      onRecovery: (dropped) => options.onRecovery?.(dropped),
    });
    this.#expiry = repeat(
      EXPIRY_INTERVAL_MS,
      () => this.expire(),
      (error) => options.onError(asError(error)),
    );
  }

  /** Removes expired days; runs every hour. */
  abstract expire(): Promise<void>;

  get queuedCalls(): number {
    return this.#writer.queuedCalls;
  }

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
    return this.#room.isOpen && this.#writer.failure === null;
  }

  protected get isWriterStarted(): boolean {
    return this.#writer.isStarted;
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

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    this.#writer.setQuota(toRef(gateway), quota);
  }

  protected forgetQuota(gateway: GatewayRef): void {
    this.#writer.forgetQuota(gateway);
  }

  /** Resolves when every row that this node has recorded before is committed (invariant 3). */
  async flush(): Promise<void> {
    if (this.#closed !== null && this.#writer.failure === null) throw new Error("the call log is closed");
    await this.#writer.whenCommitted();
  }

  /** Runs an operation in the writer's thread. */
  protected request<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    return this.#writer.request<T>(method, ...args);
  }

  /** Ends what was opened if `prepare` or the first expiry fails. From then on a writer that dies is replaced. */
  protected async begin(place: string, prepare: () => Promise<void> | void): Promise<void> {
    try {
      await prepare();
      await this.expire();
      this.#writer.replaceWhenDead();
    } catch (cause) {
      await this.#expiry.stop();
      await this.#writer.terminate();
      throw new DataFolderError(`cannot open the call log in ${place}: ${asError(cause).message}`, { cause });
    }
  }

  /** Commits the remaining rows; rejects in bounded time if that is not possible. */
  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  /** Called before the writer is closed. */
  protected abstract closeReads(): Promise<void>;

  async #close(): Promise<void> {
    // Not awaited: an expiry may wait for the writer, which ends below.
    void this.#expiry.stop();
    this.#room.close();
    await this.closeReads();
    try {
      await this.#writer.close();
    } catch (cause) {
      throw new Error(`${this.queuedCalls} calls could not be written to the log before it closed`, {
        cause,
      });
    }
  }

  #createWriter({ startWriter }: WriterOfLog): WriterThread {
    const { flushIntervalMs, onError, onFatal } = this.#options;
    // A row waits in this thread and then in the writer's; together that is the flush interval.
    const sendDelayMs = Math.min(MAX_SEND_DELAY_MS, Math.floor(flushIntervalMs / 2));
    return new WriterThread({
      sendDelayMs,
      start: () => startWriter(flushIntervalMs - sendDelayMs),
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
export function toRef({ accountId, gatewayId }: GatewayRef): GatewayRef {
  return { accountId, gatewayId };
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}
