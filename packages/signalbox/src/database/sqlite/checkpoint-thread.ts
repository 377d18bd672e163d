/**
 * Copies the WAL into the database in a thread of its own: for thousands of pages and two syncs the event loop would wait.
 *
 * Invariants:
 * 1. A copy that has begun ends: with the numbers of pages, or with an error if the thread fails or ends. The next copy starts another thread.
 * 2. The thread does not keep the process alive, and ends when nothing was copied for a while: it has some megabytes.
 */
import { Worker } from "node:worker_threads";
import type { CopyAnswer, WalPages } from "./checkpoint.worker.ts";

const MAX_IDLE_MS = 30_000;

interface Copy {
  readonly resolve: (pages: WalPages) => void;
  readonly reject: (error: Error) => void;
}

export class CheckpointThread {
  readonly #path: string;
  #worker: Worker | null = null;
  #copy: Copy | null = null;
  #idle: NodeJS.Timeout | undefined;

  constructor(path: string) {
    this.#path = path;
  }

  /** One at a time. */
  copy(): Promise<WalPages> {
    clearTimeout(this.#idle);
    this.#worker ??= this.#start();
    const worker = this.#worker;
    return new Promise((resolve, reject) => {
      this.#copy = { resolve, reject };
      worker.postMessage("copy");
    });
  }

  /** A copy in progress fails. */
  async close(): Promise<void> {
    clearTimeout(this.#idle);
    await this.#worker?.terminate();
  }

  #start(): Worker {
    // TypeScript in the repository, JavaScript in the published package.
    const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
    const worker = new Worker(new URL(`./checkpoint.worker${extension}`, import.meta.url), {
      name: "database-checkpoint",
      workerData: this.#path,
    });
    worker.unref();
    let cause: unknown;
    worker.on("message", (answer: CopyAnswer) => {
      const copy = this.#take();
      this.#idle = setTimeout(() => this.#end(), MAX_IDLE_MS).unref();
      if (answer.kind === "copied") copy?.resolve(answer.pages);
      else copy?.reject(new Error(`the WAL could not be copied: ${answer.message}`));
    });
    worker.on("error", (error) => (cause = error));
    worker.on("exit", () => {
      // It was idle, and another one may copy meanwhile.
      if (this.#worker !== worker) return;
      this.#worker = null;
      this.#take()?.reject(new Error("the thread that copies the WAL has ended", { cause }));
    });
    return worker;
  }

  #end(): void {
    void this.#worker?.terminate();
    this.#worker = null;
  }

  #take(): Copy | null {
    const copy = this.#copy;
    this.#copy = null;
    return copy;
  }
}
