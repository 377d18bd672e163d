/**
 * Usage out of a JSON body. Up to a bound the body is kept and parsed; beyond it only its head (for the model) and its tail (for the
 * usage, which every provider writes near the end) are.
 */
import { NO_USAGE } from "../../call-log/call-log.ts";
import { readUsage } from "./read-usage.ts";
import { scanModel, scanUsage } from "./scan-usage.ts";
import { readTailUsage } from "./tail-usage.ts";
import type { TappedResponse, UsageTap } from "./usage-tap.ts";

/** Parsing this much takes about a millisecond; nearly every answer that is not a batch of embeddings is smaller. */
const MAX_PARSED_BYTES = 256 * 1024;
const HEAD_BYTES = 4 * 1024;
/** Far more than what stands behind the usage in any provider's answer. */
const TAIL_BYTES = 64 * 1024;

export class JsonUsageTap implements UsageTap {
  readonly #wantsModel: boolean;
  #chunks: Uint8Array[] = [];
  #size = 0;
  #head: Buffer | null = null;

  constructor(wantsModel: boolean) {
    this.#wantsModel = wantsModel;
  }

  push(chunk: Uint8Array): void {
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    if (this.#head !== null) this.#trim();
    else if (this.#size > MAX_PARSED_BYTES) {
      this.#head = Buffer.from(Buffer.concat(this.#chunks).subarray(0, HEAD_BYTES));
      this.#trim();
    }
  }

  end(): TappedResponse {
    const chunks = this.#chunks;
    this.#chunks = [];
    if (chunks.length === 0) return { usage: NO_USAGE, model: null };
    const bytes = asBuffer(chunks);
    if (!this.#wantsModel && this.#head === null) {
      const usage = readTailUsage(bytes);
      if (usage !== null) return { usage, model: null };
    }
    const found = this.#head === null ? parse(bytes) : scanUsage(bytes);
    // Of a body that was not parsed the head is the better witness: deeper down, `model` may belong to a tool's arguments.
    const model = (this.#head === null ? null : scanModel(this.#head)) ?? found.model;
    return { usage: found.usage ?? NO_USAGE, model };
  }

  /** Lets go of chunks that lie wholly before the tail, and copies the end of one that is larger than it. */
  #trim(): void {
    let first = this.#chunks[0];
    while (first !== undefined && this.#size - first.length >= TAIL_BYTES) {
      this.#size -= first.length;
      this.#chunks.shift();
      first = this.#chunks[0];
    }
    if (this.#chunks.length === 1 && first !== undefined && first.length > TAIL_BYTES) {
      this.#chunks[0] = Buffer.from(first.subarray(first.length - TAIL_BYTES));
      this.#size = TAIL_BYTES;
    }
  }
}

function parse(bytes: Buffer) {
  try {
    return readUsage(JSON.parse(bytes.toString("utf8")));
  } catch {
    // Broken off, or not JSON after all: what can be found is better than nothing.
    return scanUsage(bytes);
  }
}

function asBuffer(chunks: readonly Uint8Array[]): Buffer {
  const [first] = chunks;
  if (chunks.length === 1 && first !== undefined) {
    return Buffer.from(first.buffer, first.byteOffset, first.byteLength);
  }
  return Buffer.concat(chunks);
}
