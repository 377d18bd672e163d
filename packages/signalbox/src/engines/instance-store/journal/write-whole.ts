import { writeSync } from "node:fs";

/** Writes all bytes, or throws. (`writeSync` on a nearly full disk writes a part and returns its length; only the next call fails.) */
export function writeWhole(fd: number, bytes: Uint8Array, position: number): void {
  for (let written = 0; written < bytes.length;)
    written += writeSync(fd, bytes, written, bytes.length - written, position + written);
}
