/**
 * Names of new files that are not yet durable, by folder. One fsync of a folder covers all names in it, so that of many files that are synced one
 * after the other only the first in each folder waits for an fsync.
 */
import { dirname } from "node:path";
import type { FolderSync } from "../folder-sync.ts";

export class UnsyncedNames {
  readonly #folderSync: FolderSync;
  readonly #byFolder = new Map<string, Set<string>>();

  constructor(folderSync: FolderSync) {
    this.#folderSync = folderSync;
  }

  /** The file must exist before the caller returns to the event loop. */
  add(path: string): void {
    const folder = dirname(path);
    const names = this.#byFolder.get(folder);
    if (names === undefined) this.#byFolder.set(folder, new Set([path]));
    else names.add(path);
  }

  /** Resolves when the name is durable. */
  async sync(path: string): Promise<void> {
    const folder = dirname(path);
    const names = this.#byFolder.get(folder);
    if (names?.has(path) !== true) return;
    const covered = [...names];
    await this.#folderSync.sync(folder);
    for (const name of covered) names.delete(name);
  }
}
