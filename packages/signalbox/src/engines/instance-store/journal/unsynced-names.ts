/**
 * Names of new files that a power cut might still take, by folder. One sync of a folder covers all of them, so of the many instances that are
 * settled one after the other only the first in each folder has to wait for one.
 */
import { dirname } from "node:path";
import type { FolderSync } from "../folder-sync.ts";

export class NewNames {
  readonly #folderSync: FolderSync;
  readonly #byFolder = new Map<string, Set<string>>();

  constructor(folderSync: FolderSync) {
    this.#folderSync = folderSync;
  }

  /** The file is there, or will be before the caller gives the event loop back. */
  add(path: string): void {
    const folder = dirname(path);
    const names = this.#byFolder.get(folder);
    if (names === undefined) this.#byFolder.set(folder, new Set([path]));
    else names.add(path);
  }

  /** Resolves when the file's name is on the disk. */
  async settle(path: string): Promise<void> {
    const folder = dirname(path);
    const names = this.#byFolder.get(folder);
    if (names?.has(path) !== true) return;
    const covered = [...names];
    await this.#folderSync.sync(folder);
    for (const name of covered) names.delete(name);
  }
}
