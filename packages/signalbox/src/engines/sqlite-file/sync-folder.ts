import { closeSync, fsyncSync, openSync } from "node:fs";

/** A new file survives a power cut only once its folder's entry is synced too. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
