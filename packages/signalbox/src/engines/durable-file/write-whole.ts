import { writeSync } from "node:fs";

/**
 * Writes all bytes, or throws. (`writeSync` on a nearly full disk writes a part and returns its length; only the next call fails.) Without a position it
 * writes where the file is. `onPart` receives the length of each part that was written, also of those before a failure.
 */
export function writeWhole(
  fd: number,
  bytes: Uint8Array,
  position: number | null = null,
  onPart?: (length: number) => void,
): void {
  for (let written = 0; written < bytes.length;) {
    const at = position === null ? null : position + written;
    const length = writeSync(fd, bytes, written, bytes.length - written, at);
    written += length;
    onPart?.(length);
  }
}
