/** Random ids of traces and spans. Random bytes are fetched in blocks: one call of the generator costs more than a span. */
import { randomFillSync } from "node:crypto";

const block = Buffer.alloc(4096);
let used = block.length;

function take(bytes: number): string {
  if (used + bytes > block.length) {
    randomFillSync(block);
    used = 0;
  }
  const text = block.toString("hex", used, used + bytes);
  used += bytes;
  return text;
}

export function randomTraceId(): string {
  return take(16);
}

export function randomSpanId(): string {
  return take(8);
}
