/**
 * The main thread's side of the readers. A worker starts with its first read, and again with the next read if it has died.
 *
 * A read that may look at many rows never delays one that cannot: the two kinds have threads of their own.
 */
import { WorkerRequests, startWorker } from "./worker-requests.ts";
import type { ReaderOptions, WorkerResponse } from "./worker-messages.ts";
import type { Worker } from "node:worker_threads";

interface Running {
  readonly worker: Worker;
  readonly requests: WorkerRequests;
}

/** Threads for reads that may take long: one for a search, while another one is answered. */
const SLOW_READERS = 2;

export class ReaderThreads {
  readonly #quick: ReaderThread;
  readonly #slow: readonly ReaderThread[];

  constructor(folder: string) {
    this.#quick = new ReaderThread(folder);
    this.#slow = Array.from({ length: SLOW_READERS }, () => new ReaderThread(folder));
  }

  /** A read of a bounded number of rows. */
  quick<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    return this.#quick.request<T>(method, ...args);
  }

  /** A read that may look at many rows; goes to the thread with the fewest. */
  slow<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    const free = this.#slow.reduce((best, one) => (one.pending < best.pending ? one : best));
    return free.request<T>(method, ...args);
  }

  async close(): Promise<void> {
    await Promise.all([this.#quick, ...this.#slow].map((thread) => thread.close()));
  }
}

class ReaderThread {
  readonly #folder: string;
  #running: Running | null = null;

  constructor(folder: string) {
    this.#folder = folder;
  }

  get pending(): number {
    return this.#running?.requests.pending ?? 0;
  }

  request<T>(method: string, ...args: readonly unknown[]): Promise<T> {
    this.#running ??= this.#start();
    return this.#running.requests.send<T>(method, ...args);
  }

  async close(): Promise<void> {
    const running = this.#running;
    if (running === null) return;
    // A failure is ignored: the reader writes nothing, so nothing can be lost.
    await running.requests.send("close").catch(() => undefined);
    await running.worker.terminate();
  }

  #start(): Running {
    const options: ReaderOptions = { folder: this.#folder };
    const worker = startWorker("call-reader", import.meta.url, options);
    const requests = new WorkerRequests(worker);
    let cause: Error | undefined;
    worker.on("message", (response: WorkerResponse) => requests.receive(response));
    worker.on("error", (error: Error) => (cause = error));
    worker.on("exit", () => {
      requests.fail(cause ?? new Error("the call log's reader ended unexpectedly"));
      if (this.#running?.worker === worker) this.#running = null;
    });
    return { worker, requests };
  }
}
