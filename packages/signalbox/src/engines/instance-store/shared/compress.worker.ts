/** Compresses the records of a group commit. `compressor.ts` is the other side. */
import { parentPort } from "node:worker_threads";
import { writeStored } from "./record.ts";
import { ZstdFrames } from "./zstd-frames.ts";

export interface CompressRequest {
  /** Only if they are not those of the last request. */
  readonly memory?: { readonly raw: SharedArrayBuffer; readonly stored: SharedArrayBuffer };
  /** Lengths of the raw records, one after the other. */
  readonly lengths: readonly number[];
}

/** Lengths of the stored records, one after the other. */
export type CompressAnswer = readonly number[];

const frames = new ZstdFrames();
const compress = (record: Buffer) => frames.compress(record);
let raw: Buffer = Buffer.alloc(0);
let stored: Buffer = Buffer.alloc(0);

parentPort?.on("message", ({ memory, lengths }: CompressRequest) => {
  if (memory !== undefined) {
    raw = Buffer.from(memory.raw);
    stored = Buffer.from(memory.stored);
  }
  let from = 0;
  let to = 0;
  const answer: CompressAnswer = lengths.map((length) => {
    const written = writeStored(raw.subarray(from, from + length), stored, to, compress);
    from += length;
    to += written;
    return written;
  });
  parentPort?.postMessage(answer);
});
