/**
 * Inside of the process: questions to the process that started it whose answers the code waits for without giving up the thread, as a program waits for its SQL statements. Each
 * message is 4 bytes length and its bytes.
 */
import { readSync } from "node:fs";
import { writeWhole } from "../durable-file/index.ts";

const DESCRIPTOR = 4;

export function askParent(question: Uint8Array): Buffer {
  tellParent(question);
  return read(read(4).readUInt32LE());
}

/** A message without an answer. */
export function tellParent(message: Uint8Array): void {
  const head = Buffer.allocUnsafe(4);
  head.writeUInt32LE(message.length);
  writeWhole(DESCRIPTOR, Buffer.concat([head, message]));
}

function read(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length);
  for (let filled = 0; filled < length;) {
    const count = readSync(DESCRIPTOR, bytes, filled, length - filled, null);
    if (count === 0) throw new Error("the server is gone");
    filled += count;
  }
  return bytes;
}
