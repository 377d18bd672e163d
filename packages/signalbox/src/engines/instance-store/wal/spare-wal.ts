/**
 * WAL files of open databases, and spare ones in the folder `spare-wal`. SQLite creates a WAL when it opens a database and removes the WAL when it
 * closes the database; creating an inode is the most expensive file-system call when an instance wakes. So WAL files are renamed and reused.
 *
 * Invariants:
 * 1. A database is opened with an empty WAL. A WAL that a crashed process left is worthless, because its commits are in the journal or were not
 *    acknowledged. An orderly close removes the folder `spare-wal`; if the folder exists at start, the last process crashed and its WAL files are
 *    removed in the background, folder by folder. In a folder that is not yet swept, a WAL found at `attach` is replaced.
 * 2. A WAL is emptied only after SQLite has closed the database that used it. Without its header the WAL is empty for SQLite. Truncating would
 *    free blocks that the next user allocates again.
 * 3. `spare-wal` is removed only when the folders of the databases hold no WAL durably: the plain engine would recover the WAL.
 */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder, writeWhole } from "../../durable-file/index.ts";
import type { FolderSync } from "../folder-sync.ts";
import { FOLDER_NAME } from "../instance-path.ts";
import { WAL_HEADER_BYTES } from "./wal-reader.ts";

/** Spare files; enough for instances that come and go. */
const MAX_SPARES = 256;
const MAX_SPARE_BYTES = 128 * 1024;
const NO_HEADER = Buffer.alloc(WAL_HEADER_BYTES);
const FOLDER = "spare-wal";

export interface WalFile {
  readonly fd: number;
  /** Path while the file is spare; null before its first use has ended. */
  spare: string | null;
}

export class SpareWal {
  readonly #folder: string;
  readonly #folderSync: FolderSync;
  #spares: WalFile[] = [];
  #counter = 0;
  /** Folders of databases that had a WAL. */
  readonly #used = new Set<string>();
  /** Folders that may hold WAL files of a crashed process. */
  readonly #unswept: Set<string>;
  /** WAL files in use, until all folders are swept. */
  readonly #inUse = new Set<string>();
  readonly #sweeping: Promise<void>;
  #isClosed = false;

  /** Takes the same time for any number of instances. */
  constructor(root: string, folderSync: FolderSync) {
    this.#folder = join(root, FOLDER);
    this.#folderSync = folderSync;
    this.#unswept = new Set(SpareWal.isLeftIn(root) ? foldersOf(root) : []);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#folder)) rmSync(join(this.#folder, name));
    syncFolder(root);
    this.#sweeping = this.#sweep();
  }

  /** True if the last process that used the folder crashed. */
  static isLeftIn(root: string): boolean {
    return existsSync(join(root, FOLDER));
  }

  /** Resolves when the WAL files of a crashed process are removed; some may be left if a folder cannot be read. */
  get swept(): Promise<void> {
    return this.#sweeping;
  }

  /** Creates an empty WAL before SQLite opens the database. No other process has a new database open. */
  attach(databasePath: string, isNew: boolean): WalFile {
    const path = `${databasePath}-wal`;
    const folder = dirname(path);
    this.#used.add(folder);
    if (this.#unswept.size > 0) {
      if (this.#unswept.has(folder)) rmSync(path, { force: true });
      this.#inUse.add(path);
    }
    if (!isNew && isInUse(path))
      throw new Error(`another program has ${databasePath} open and has written to it`);
    const wal = this.#spares.pop();
    if (wal === undefined) return { fd: openSync(path, "w+", 0o600), spare: null };
    renameSync(wal.spare as string, path);
    return wal;
  }

  /** Renames the WAL before SQLite closes the database, so that SQLite finds no WAL to remove. */
  detach(databasePath: string, wal: WalFile): void {
    this.#inUse.delete(`${databasePath}-wal`);
    this.#counter += 1;
    wal.spare = join(this.#folder, String(this.#counter));
    renameSync(`${databasePath}-wal`, wal.spare);
  }

  /** Empties a detached WAL, of which `usedBytes` were used, for the next database. */
  release(wal: WalFile, usedBytes: number): void {
    if (this.#spares.length < MAX_SPARES) {
      if (usedBytes > MAX_SPARE_BYTES) ftruncateSync(wal.fd, 0);
      else if (usedBytes > 0) writeWhole(wal.fd, NO_HEADER, 0);
      this.#spares.push(wal);
    } else {
      closeSync(wal.fd);
      rmSync(wal.spare as string, { force: true });
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#sweeping;
    for (const { fd, spare } of this.#spares) {
      closeSync(fd);
      rmSync(spare as string, { force: true });
    }
    this.#spares = [];
    if (this.#unswept.size > 0) return;
    await Promise.all([...this.#used].map((folder) => this.#folderSync.sync(folder)));
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #sweep(): Promise<void> {
    for (const folder of this.#unswept) {
      if (this.#isClosed) return;
      let names: string[];
      try {
        names = await readdir(folder);
      } catch {
        // The folder stays unswept: `attach` replaces its WAL files one by one, and the next start tries again.
        continue;
      }
      // Synchronous from here on: no database is opened in between.
      let isChanged = false;
      for (const name of names) {
        const path = join(folder, name);
        if (!name.endsWith("-wal") || this.#inUse.has(path)) continue;
        rmSync(path, { force: true });
        isChanged = true;
      }
      if (isChanged) this.#used.add(folder);
      this.#unswept.delete(folder);
    }
    if (this.#unswept.size === 0) this.#inUse.clear();
  }
}

function isInUse(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function foldersOf(root: string): string[] {
  return readdirSync(root)
    .filter((name) => FOLDER_NAME.test(name))
    .map((name) => join(root, name));
}
