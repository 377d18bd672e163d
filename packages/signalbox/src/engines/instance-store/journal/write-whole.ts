/** `writeSync` writes what fits and says how much: on a disk that is nearly full, only the next call fails. */
import { writeSync } from "node:fs";

/** Throws when the disk does not take all of it. */
export function writeWhole(fd: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length;)
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
}
