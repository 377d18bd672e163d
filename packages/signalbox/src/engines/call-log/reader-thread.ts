/** The main thread's side of the reader. The worker starts with the first read, and again with the next read if it has died. */
import { WorkerRequests, startWorker } from "./worker-requests.ts";
import type { ReaderOptions, WorkerResponse } from "./worker-messages.ts";
import type { Worker } from "node:worker_threads";

interface Running {
  readonly worker: Worker;
  readonly requests: WorkerRequests;
}

export class ReaderThread {
  readonly #folder: string;
  #running: Running | null = null;

  constructor(folder: string) {
    this.#folder = folder;
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
