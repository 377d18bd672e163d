import { closeSync, fsyncSync, openSync } from "node:fs";

/** Makes the names of new files durable: a file survives a power failure only if its folder is synced, too. */
export function syncFolder(path: string): void {
  const folder = openSync(path, "r");
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}
