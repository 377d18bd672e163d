/** Compresses the records of a group commit. `compressor.ts` is the other side. */
import { parentPort } from "node:worker_threads";
import { MIN_COMPRESSED_BYTES, toStored } from "./record.ts";

export interface CompressRequest {
  readonly raw: ArrayBuffer;
  readonly lengths: readonly number[];
}

export interface CompressAnswer {
  readonly stored: ArrayBuffer;
  readonly lengths: readonly number[];
}

parentPort?.on("message", ({ raw, lengths }: CompressRequest) => {
  const records: Buffer[] = [];
  let offset = 0;
  for (const length of lengths) {
    records.push(toStored(new Uint8Array(raw, offset, length), length >= MIN_COMPRESSED_BYTES));
    offset += length;
  }
  const total = records.reduce((sum, record) => sum + record.length, 0);
  const stored = Buffer.from(new ArrayBuffer(total));
  let at = 0;
  for (const record of records) at += record.copy(stored, at);
  const answer: CompressAnswer = { stored: stored.buffer, lengths: records.map(({ length }) => length) };
  parentPort?.postMessage(answer, [answer.stored]);
});
