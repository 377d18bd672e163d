/**
 * The main thread's side of the writer: the queue, the worker, and its replacement when the worker dies.
 *
 *   add ─► queue ──every few ms──► worker ──each flush interval──► calls-2026-11-15.db
 *            ▲                        │
 *            └────── committed ───────┘
 *
 * A row leaves the queue when the worker has reported its commit. If the worker dies, a new one gets the remaining rows again and recognises
 * rows that were committed but not reported by their ids (invariant 2). A worker that dies before it has committed anything, twice in a row,
 * is not replaced: the cause is permanent.
 */
import type { Worker } from "node:worker_threads";
import type { CallQuota, CallRecord, GatewayRef } from "./call-log.ts";
import { keyOf } from "./gateway-rows.ts";
import { type QueuedBatch, RowQueue } from "./row-queue.ts";
import type { RemovedForSize, WriterMessage, WriterReport } from "./worker-messages.ts";
import { WorkerRequests } from "./worker-requests.ts";

/** Rows are sent together: a message wakes the other thread, which costs more than a dozen rows. */
export const MAX_SEND_DELAY_MS = 20;
/** This many rows are sent without waiting. */
const SEND_ROWS = 512;

export interface WriterThreadOptions {
  readonly sendDelayMs: number;
  readonly start: () => Worker;
  readonly onCommitted: () => void;
  /** A commit failed and is retried; returns the error for operations that wait for it. */
  readonly onFailed: (reason: string) => Error;
  /** The size of the log, and what the size limit has removed since the last report. */
  readonly onSize: (bytes: number, removed: RemovedForSize) => void;
  /** The worker died and was replaced. */
  readonly onReplaced: (error: Error) => void;
  /** The worker died and cannot be replaced. */
  readonly onFatal: (error: Error) => void;
}

interface CommitWaiter {
  readonly position: number;
  readonly resolve: () => void;
  readonly reject: (error: Error) => void;
}

export class WriterThread {
  readonly #options: WriterThreadOptions;
  readonly #queue = new RowQueue();
  readonly #quotas = new Map<string, { gateway: GatewayRef; quota: CallQuota }>();
  /** Started with the first operation: an installation without calls has no thread. */
  #worker: Worker | null = null;
  #requests: WorkerRequests | null = null;
  /** Position of the last row sent to the worker. */
  #sent = 0;
  #sendTimer: NodeJS.Timeout | undefined;
  #waiters: CommitWaiter[] = [];
  #hasCommitted = true;
  #isReplaced = false;
  #failure: Error | null = null;

  constructor(options: WriterThreadOptions) {
    this.#options = options;
  }

  get isStarted(): boolean {
    return this.#worker !== null;
  }

  /** Why the worker cannot be replaced any more. */
  get failure(): Error | null {
    return this.#failure;
  }

  get queuedCalls(): number {
    return this.#queue.length;
  }

  get queuedBytes(): number {
    return this.#queue.bodyBytes;
  }

  add(call: CallRecord): void {
    this.#queue.add(call);
    if (this.#queue.added - this.#sent >= SEND_ROWS) this.#sendRows();
    else this.#sendTimer ??= setTimeout(() => this.#sendRows(), this.#options.sendDelayMs);
  }

  setQuota(gateway: GatewayRef, quota: CallQuota | null): void {
    const key = keyOf(gateway);
    if (quota === null && !this.#quotas.has(key)) return;
    if (quota === null) this.#quotas.delete(key);
    else this.#quotas.set(key, { gateway, quota });
    // A worker that starts later gets all quotas.
    if (this.#worker === null && this.#queue.length === 0) return;
    this.#sendRows();
    this.#post({ kind: "quota", gateway, quota });
  }

  forgetQuota(gateway: GatewayRef): void {
    this.#quotas.delete(keyOf(gateway));
  }

  /** Resolves when every row added before is committed (invariant 3). */
  async whenCommitted(): Promise<void> {
    if (this.#failure !== null) throw this.#failure;
    if (this.#queue.length === 0) return;
    this.#sendRows();
    this.#post({ kind: "flush" });
    const position = this.#queue.added;
    await new Promise<void>((resolve, reject) => this.#waiters.push({ position, resolve, reject }));
  }

  request<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const { requests } = this.#start();
    return requests.send<T>(method, ...args);
  }

  /** From now on a worker that dies is replaced; until then its death fails the pending requests only. */
  replaceWhenDead(): void {
    this.#isReplaced = true;
  }

  /** Commits the remaining rows and ends the worker; rejects if the rows cannot be committed. */
  async close(): Promise<void> {
    this.#sendRows();
    this.#isReplaced = false;
    try {
      if (this.#failure !== null) throw this.#failure;
      await this.#requests?.send("close");
    } finally {
      await this.#worker?.terminate();
    }
  }

  async terminate(): Promise<void> {
    this.#isReplaced = false;
    await this.#worker?.terminate();
  }

  #sendRows(): void {
    clearTimeout(this.#sendTimer);
    this.#sendTimer = undefined;
    this.#sent = this.#queue.added;
    for (const queued of this.#queue.takeBatches()) this.#send(queued);
  }

  #send({ batch, bodyBytes, position }: QueuedBatch): void {
    this.#post({ kind: "rows", batch, bodyBytes, position });
  }

  #post(message: WriterMessage): void {
    this.#start().worker.postMessage(message);
  }

  #start(): { worker: Worker; requests: WorkerRequests } {
    if (this.#worker !== null && this.#requests !== null) {
      return { worker: this.#worker, requests: this.#requests };
    }
    const worker = this.#options.start();
    const requests = new WorkerRequests(worker);
    let cause: Error | undefined;
    // A worker counts from its own start.
    let removedBefore: RemovedForSize = { bodies: 0, rows: 0 };
    worker.on("message", (report: WriterReport) => {
      if (report.kind !== "size") return this.#receive(report, requests);
      const { bytes, removed } = report;
      const bodies = removed.bodies - removedBefore.bodies;
      this.#options.onSize(bytes, { bodies, rows: removed.rows - removedBefore.rows });
      removedBefore = removed;
    });
    worker.on("error", (error: Error) => (cause = error));
    worker.on("exit", () => {
      const error = new Error("the call log's writer ended unexpectedly", { cause });
      requests.fail(cause ?? error);
      if (this.#isReplaced) this.#replace(error);
    });
    this.#worker = worker;
    this.#requests = requests;
    for (const { gateway, quota } of this.#quotas.values()) this.#post({ kind: "quota", gateway, quota });
    return { worker, requests };
  }

  #receive(report: Exclude<WriterReport, { kind: "size" }>, requests: WorkerRequests): void {
    if (report.kind === "committed") this.#committed(report.position);
    else if (report.kind === "failed") this.#failWaiters(this.#options.onFailed(report.message));
    else requests.receive(report);
  }

  #committed(position: number): void {
    this.#hasCommitted = true;
    this.#queue.release(position);
    const waiters = this.#waiters;
    this.#waiters = waiters.filter((waiter) => waiter.position > position);
    for (const waiter of waiters) if (waiter.position <= position) waiter.resolve();
    this.#options.onCommitted();
  }

  #replace(error: Error): void {
    this.#failWaiters(error);
    if (!this.#hasCommitted) {
      this.#failure = error;
      this.#options.onFatal(error);
      return;
    }
    this.#options.onReplaced(error);
    this.#hasCommitted = false;
    this.#worker = null;
    this.#start();
    for (const queued of this.#queue.unreleased) this.#send(queued);
  }

  #failWaiters(error: Error): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(error);
  }
}
