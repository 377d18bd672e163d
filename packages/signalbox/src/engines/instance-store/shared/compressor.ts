/**
 * The memory in which the raw records of a group commit are collected, and turned into stored records, off the event loop. A thread of its own compresses
 * all records of a group: one small message there and one back. A task in the thread pool for each record takes four times the CPU time of the
 * compression itself. Both threads use the same memory, again and again: a buffer for each record would be work for the garbage collector.
 * See ../README.md.
 *
 * One group at a time: `begin`, then `room` and `add` for each record, then `finish`; its result is valid until the next `begin`. If the thread
 * ends, records are stored uncompressed.
 */
import { Worker } from "node:worker_threads";
import type { CompressAnswer, CompressRequest } from "./compress.worker.ts";
import { MIN_COMPRESSED_BYTES, STORED_HEAD_BYTES, writeStored } from "./record.ts";

const FIRST_BYTES = 1024 * 1024;
/** Larger memory is not kept. */
const MAX_KEPT_BYTES = 16 * 1024 * 1024;

interface Memory {
  readonly raw: Buffer;
  readonly stored: Buffer;
  readonly shared: NonNullable<CompressRequest["memory"]>;
}

export class Compressor {
  #worker: Worker | null = null;
  #isBroken = false;
  #memory: Memory = allocate(FIRST_BYTES);
  /** The thread has this memory. */
  #isKnown = false;
  #lengths: number[] = [];
  #starts: number[] = [];
  #end = 0;
  #answer: ((lengths: CompressAnswer | null) => void) | null = null;

  begin(): void {
    this.#lengths = [];
    this.#starts = [];
    this.#end = 0;
    if (this.#memory.raw.length > MAX_KEPT_BYTES) this.#replace(allocate(FIRST_BYTES));
  }

  /** Memory for the next raw record, of at most so many bytes. */
  room(bytes: number): Buffer {
    const needed = this.#end + bytes + STORED_HEAD_BYTES * (this.#lengths.length + 1);
    if (needed > this.#memory.raw.length) {
      const larger = allocate(Math.max(needed, 2 * this.#memory.raw.length));
      this.#memory.raw.copy(larger.raw, 0, 0, this.#end);
      this.#replace(larger);
    }
    return this.#memory.raw.subarray(this.#end, this.#end + bytes);
  }

  /** The record in `room` has so many bytes. */
  add(length: number): void {
    this.#lengths.push(length);
    this.#starts.push(this.#end);
    this.#end += length;
  }

  /** The raw record of the group with the given number. */
  rawOf(i: number): Buffer {
    const start = this.#starts[i] ?? 0;
    return this.#memory.raw.subarray(start, start + (this.#lengths[i] ?? 0));
  }

  /** The stored records, one after the other, and their lengths. */
  async finish(): Promise<{ readonly stored: Buffer; readonly lengths: readonly number[] }> {
    const isLarge = this.#lengths.some((length) => length >= MIN_COMPRESSED_BYTES);
    const lengths = (isLarge && !this.#isBroken ? await this.#compress() : null) ?? this.#copy();
    const total = lengths.reduce((sum, length) => sum + length, 0);
    return { stored: this.#memory.stored.subarray(0, total), lengths };
  }

  async close(): Promise<void> {
    const worker = this.#worker;
    this.#isBroken = true;
    this.#worker = null;
    await worker?.terminate();
  }

  #replace(memory: Memory): void {
    this.#memory = memory;
    this.#isKnown = false;
  }

  /** Null if the thread has ended. */
  #compress(): Promise<CompressAnswer | null> {
    const worker = (this.#worker ??= this.#start());
    const request: CompressRequest = this.#isKnown
      ? { lengths: this.#lengths }
      : { lengths: this.#lengths, memory: this.#memory.shared };
    this.#isKnown = true;
    return new Promise((resolve) => {
      this.#answer = resolve;
      worker.postMessage(request);
    });
  }

  #copy(): CompressAnswer {
    let from = 0;
    let to = 0;
    return this.#lengths.map((length) => {
      const raw = this.#memory.raw.subarray(from, from + length);
      const written = writeStored(raw, this.#memory.stored, to, null);
      from += length;
      to += written;
      return written;
    });
  }

  #start(): Worker {
    const worker = new Worker(new URL("./compress.worker.ts", import.meta.url));
    worker.unref();
    worker.on("message", (lengths: CompressAnswer) => this.#answer?.(lengths));
    // An error is followed by the exit.
    worker.on("error", () => undefined);
    worker.on("exit", () => {
      this.#isBroken = true;
      this.#answer?.(null);
    });
    return worker;
  }
}

/** A stored record is at most as long as the raw one with its head; `room` counts the heads. */
function allocate(bytes: number): Memory {
  const shared = { raw: new SharedArrayBuffer(bytes), stored: new SharedArrayBuffer(bytes) };
  return { shared, raw: Buffer.from(shared.raw), stored: Buffer.from(shared.stored) };
}
