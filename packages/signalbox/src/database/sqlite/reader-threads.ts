/**
 * Reads that may visit many rows, in threads of their own: SQLite would block the event loop meanwhile.
 *
 * Invariants:
 * 1. A read sees every commit before the call: its statement begins later, and the threads read the same file and WAL.
 * 2. There are as many threads as scans that run at once (`ScanTurns`), and a read goes to a thread that has none.
 * 3. A thread starts with the first read for which no other is free, and again after its death, which fails the reads it had. It does not keep the process alive.
 */
import { Worker } from "node:worker_threads";
import { SignalboxError } from "@signalbox/protocol";
import type { SqlQuery } from "../../core/sql.ts";
import { MAX_SCANS } from "../scan-turns.ts";
import type { ReadAnswer, ReadQuestion } from "./reader.worker.ts";

interface Reading {
  readonly resolve: (rows: unknown[]) => void;
  readonly reject: (error: Error) => void;
}

export class ReaderThreads {
  readonly #threads: readonly ReaderThread[];

  constructor(path: string) {
    this.#threads = Array.from({ length: MAX_SCANS }, () => new ReaderThread(path));
  }

  all<Row>(query: SqlQuery): Promise<Row[]> {
    const [first, ...others] = this.#threads;
    let chosen = first as ReaderThread;
    for (const thread of others) if (thread.waiting < chosen.waiting) chosen = thread;
    return chosen.all(query) as Promise<Row[]>;
  }

  /** Reads in progress fail. */
  async close(): Promise<void> {
    await Promise.all(this.#threads.map((thread) => thread.close()));
  }
}

class ReaderThread {
  readonly #path: string;
  readonly #readings = new Map<number, Reading>();
  #worker: Worker | null = null;
  #isClosed = false;
  #lastId = 0;

  constructor(path: string) {
    this.#path = path;
  }

  get waiting(): number {
    return this.#readings.size;
  }

  all({ parts, values }: SqlQuery): Promise<unknown[]> {
    if (this.#isClosed) return Promise.reject(new Error("the database is closed"));
    this.#worker ??= this.#start();
    const worker = this.#worker;
    const id = ++this.#lastId;
    return new Promise((resolve, reject) => {
      this.#readings.set(id, { resolve, reject });
      worker.postMessage({ id, parts, values } satisfies ReadQuestion);
    });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#worker?.terminate();
  }

  #start(): Worker {
    // TypeScript in the repository, JavaScript in the published package.
    const extension = import.meta.url.endsWith(".ts") ? ".ts" : ".js";
    const worker = new Worker(new URL(`./reader.worker${extension}`, import.meta.url), {
      name: "database-reader",
      workerData: this.#path,
    });
    worker.unref();
    let cause: unknown;
    worker.on("message", (answer: ReadAnswer) => this.#receive(answer));
    worker.on("error", (error) => (cause = error));
    worker.on("exit", () => {
      if (this.#worker === worker) this.#worker = null;
      for (const { reject } of this.#readings.values())
        reject(new Error("a thread that reads the database has ended", { cause }));
      this.#readings.clear();
    });
    return worker;
  }

  #receive(answer: ReadAnswer): void {
    const reading = this.#readings.get(answer.id);
    this.#readings.delete(answer.id);
    if (answer.kind === "rows") reading?.resolve(answer.rows);
    else if (answer.isTemporary)
      reading?.reject(new SignalboxError("storage_unavailable", { message: answer.message }));
    else reading?.reject(new Error(answer.message));
  }
}
