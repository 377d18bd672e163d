/**
 * Turns raw records into stored bytes, off the event loop. A thread of its own compresses all records of a group commit: one message there and one
 * back for the group. A task in the thread pool for each record takes four times the CPU time of the compression itself.
 * See docs/decisions/0164.
 *
 * Groups are answered in order. If the thread ends, records are stored uncompressed.
 */
import { Worker } from "node:worker_threads";
import type { CompressAnswer, CompressRequest } from "./compress.worker.ts";
import { MIN_COMPRESSED_BYTES, toStored } from "./record.ts";

interface Waiting {
  readonly raws: readonly Buffer[];
  readonly resolve: (stored: Buffer[]) => void;
}

export class Compressor {
  #worker: Worker | null = null;
  #isBroken = false;
  #waiting: Waiting[] = [];

  /** The stored bytes of each record, in one allocation if they were compressed. */
  compress(raws: readonly Buffer[]): Promise<Buffer[]> | Buffer[] {
    if (this.#isBroken || raws.every(({ length }) => length < MIN_COMPRESSED_BYTES)) return storeRaw(raws);
    const worker = (this.#worker ??= this.#start());
    const lengths = raws.map(({ length }) => length);
    const raw = Buffer.from(new ArrayBuffer(lengths.reduce((sum, length) => sum + length, 0)));
    let at = 0;
    for (const record of raws) at += record.copy(raw, at);
    const request: CompressRequest = { raw: raw.buffer, lengths };
    worker.postMessage(request, [request.raw]);
    return new Promise((resolve) => this.#waiting.push({ raws, resolve }));
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#isBroken = true;
    this.#worker = null;
    await worker?.terminate();
  }

  #start(): Worker {
    const worker = new Worker(new URL("./compress.worker.ts", import.meta.url));
    worker.unref();
    worker.on("message", (answer: CompressAnswer) => {
      this.#waiting.shift()?.resolve(split(answer));
    });
    // An error is followed by the exit.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      this.#isBroken = true;
      for (const { raws, resolve } of this.#waiting.splice(0)) resolve(storeRaw(raws));
    });
    return worker;
  }
}

function split({ stored, lengths }: CompressAnswer): Buffer[] {
  let at = 0;
  return lengths.map((length) => {
    const record = Buffer.from(stored, at, length);
    at += length;
    return record;
  });
}

function storeRaw(raws: readonly Buffer[]): Buffer[] {
  return raws.map((raw) => toStored(raw, false));
}
