/**
 * Watches the sources of a program: all files below a folder that a rule accepts, and single files elsewhere.
 *
 * 1. Folders are watched, not files: editors replace a file by another one with its name, and a watch of the file would stay with the old one.
 *    (A recursive watch of Node follows files on Linux.)
 * 2. A folder that is removed or moved away is watched again when it is back, however deep it was; until then its nearest existing parent is.
 * 3. A folder that appears reports its files: they may be older than its watch.
 */
import { type FSWatcher, readdirSync, statSync, watch } from "node:fs";
import { basename, dirname, join } from "node:path";

export interface SourceWatchOptions {
  readonly folder: string;
  /** Whether changes of a file matter, by its absolute path. */
  readonly isSource: (path: string) => boolean;
  /** Folders that are not entered. */
  readonly isIgnored: (folder: string) => boolean;
  readonly onChange: (path: string) => void;
  /** A folder cannot be watched, e.g. because the system has no watches left. */
  readonly onError: (folder: string, error: Error) => void;
}

export class SourceWatch {
  readonly #options: SourceWatchOptions;
  readonly #watchers = new Map<string, FSWatcher>();
  /** Watched for what is missing below them. */
  readonly #parents = new Map<string, FSWatcher>();
  readonly #files = new Set<string>();
  #isClosed = false;

  constructor(options: SourceWatchOptions) {
    this.#options = options;
    this.#enter(options.folder, false);
  }

  /** Watches a file that is not below the folder, or that its rule does not accept. */
  add(file: string): void {
    if (this.#files.has(file)) return;
    this.#files.add(file);
    this.#watchFolderOf(file, false);
  }

  close(): void {
    this.#isClosed = true;
    for (const watcher of [...this.#watchers.values(), ...this.#parents.values()]) watcher.close();
    this.#watchers.clear();
    this.#parents.clear();
  }

  /** Watches a folder and those in it. */
  #enter(folder: string, isNew: boolean): void {
    if (this.#options.isIgnored(folder)) return;
    if (!this.#watch(folder, isNew)) return;
    let entries;
    try {
      entries = readdirSync(folder, { withFileTypes: true });
    } catch {
      // Removed in the meantime: its own watch or its parent's has the event.
      return;
    }
    for (const entry of entries) {
      const path = join(folder, entry.name);
      if (entry.isDirectory()) this.#enter(path, isNew);
      else if (isNew) this.#changed(path);
    }
  }

  #watchFolderOf(file: string, isNew: boolean): void {
    const folder = dirname(file);
    if (this.#watchers.has(folder)) return;
    if (this.#watch(folder, isNew) && isNew) this.#changed(file);
  }

  /** False if the folder is missing. */
  #watch(folder: string, isNew: boolean): boolean {
    if (this.#isClosed) return false;
    this.#watchers.get(folder)?.close();
    this.#watchers.delete(folder);
    const watcher = this.#open(folder, (event, name) => this.#onEvent(folder, event, name));
    if (watcher === null) {
      if (!isFolder(folder)) this.#awaitFolder(folder);
      return isFolder(folder);
    }
    this.#watchers.set(folder, watcher);
    // It may have been replaced before the watch began.
    if (isNew && !isFolder(folder)) this.#awaitFolder(folder);
    return true;
  }

  #onEvent(folder: string, event: string, name: string | null): void {
    if (this.#isClosed) return;
    // The folder itself was removed, moved or replaced. A file with its name in it only causes needless work.
    if (name === null || (event === "rename" && name === basename(folder))) this.#renew(folder);
    if (name === null) return;
    const path = join(folder, name);
    if (isFolder(path)) {
      if (event === "rename" && this.#isBelow(path)) this.#renew(path);
      return;
    }
    if (event === "rename") this.#leave(path);
    this.#changed(path);
  }

  /** Watches what is at the path now. */
  #renew(folder: string): void {
    this.#leave(folder);
    if (this.#isBelow(folder)) this.#enter(folder, true);
    for (const file of this.#files) if (dirname(file) === folder) this.#watchFolderOf(file, true);
  }

  #leave(folder: string): void {
    for (const [path, watcher] of this.#watchers) {
      if (path !== folder && !path.startsWith(join(folder, "/"))) continue;
      watcher.close();
      this.#watchers.delete(path);
    }
  }

  /** Waits for a missing folder at its nearest existing parent. */
  #awaitFolder(folder: string): void {
    let parent = dirname(folder);
    while (!isFolder(parent) && parent !== dirname(parent)) parent = dirname(parent);
    if (this.#parents.has(parent)) return;
    const look = () => {
      this.#parents.get(parent)?.close();
      this.#parents.delete(parent);
      this.#lookForMissing();
    };
    const watcher = this.#open(parent, look);
    if (watcher === null) return;
    this.#parents.set(parent, watcher);
    // It may have appeared before the watch began.
    if (isFolder(folder)) look();
  }

  #lookForMissing(): void {
    if (this.#isClosed) return;
    const { folder } = this.#options;
    if (!this.#watchers.has(folder)) this.#enter(folder, true);
    for (const file of this.#files) this.#watchFolderOf(file, true);
  }

  #open(folder: string, listener: (event: string, name: string | null) => void): FSWatcher | null {
    try {
      const watcher = watch(folder, listener);
      watcher.on("error", () => watcher.close());
      return watcher;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== "ENOENT") this.#options.onError(folder, error as Error);
      return null;
    }
  }

  #isBelow(path: string): boolean {
    const { folder } = this.#options;
    return path === folder || path.startsWith(join(folder, "/"));
  }

  #changed(path: string): void {
    const { isSource, onChange } = this.#options;
    if (this.#files.has(path) || (this.#isBelow(path) && isSource(path))) onChange(path);
  }
}

function isFolder(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
}
