import { closeSync, fsyncSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { syncFolder } from "./sync-folder.ts";
import { writeWhole } from "./write-whole.ts";

/**
 * Creates or replaces a file that only its owner can read. A reader finds the former content or the new one, complete, whenever the process or the machine
 * ends. When it returns, the new one is durable. It throws, and the former content stays, if the disk is full.
 */
export function replaceFile(path: string, content: string | Uint8Array): void {
  const draft = `${path}.new`;
  try {
    const descriptor = openSync(draft, "w", 0o600);
    try {
      writeWhole(descriptor, typeof content === "string" ? Buffer.from(content) : content);
      fsyncSync(descriptor);
    } finally {
      closeSync(descriptor);
    }
    renameSync(draft, path);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
  syncFolder(dirname(path));
}
