/**
 * SQLite's log files (`-wal`) of open instances. SQLite would create one whenever it opens a database and remove it at the close, and making an
 * inode is the dearest thing a file system is asked for when an instance wakes; so they are put aside and used again, under another name.
 *
 * Invariants:
 * 1. A log that an instance starts with is empty. What the logs of a process that was killed hold is of no use: the journal has it, or nobody
 *    was told of it. The next start, which the folder of spare logs tells of them, removes them in the background, folder by folder; in a folder
 *    that is still to be swept, a log that an instance finds is replaced. The folder of spare logs goes with an orderly stop after that is done.
 * 2. A log is emptied only after SQLite has closed the database that used it. Without its header it is empty for SQLite, whatever follows;
 *    cutting it would make the file system give back room that the next user asks for again.
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
  writeSync,
} from "node:fs";
import { readdir } from "node:fs/promises";
import { dirname, join } from "node:path";
import { syncFolder } from "../../sqlite-file/index.ts";
import { WAL_HEADER_BYTES } from "./wal-reader.ts";

/** Logs kept for use; enough for instances that come and go. */
const MAX_SPARES = 256;
const MAX_SPARE_BYTES = 128 * 1024;
const NO_HEADER = Buffer.alloc(WAL_HEADER_BYTES);

export interface LogFile {
  readonly fd: number;
  /** Where it is while it is not in use; null until it was first put aside. */
  spare: string | null;
}

export class LogFiles {
  readonly #folder: string;
  #spares: LogFile[] = [];
  #counter = 0;
  /** Folders that may hold logs of a process that was killed. */
  readonly #unswept: Set<string>;
  /** Logs in use, while there is something to be swept. */
  readonly #inUse = new Set<string>();
  readonly #sweeping: Promise<void>;
  #isClosed = false;

  /** Takes as long for a million instances as for none. */
  constructor(root: string) {
    this.#folder = join(root, "logs");
    this.#unswept = new Set(existsSync(this.#folder) ? foldersOf(root) : []);
    rmSync(this.#folder, { recursive: true, force: true });
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    syncFolder(root);
    this.#sweeping = this.#sweep();
  }

  /** Gives the database an empty log before SQLite opens it. Nobody else can have one open that `isNew`. */
  lay(databasePath: string, isNew: boolean): LogFile {
    const path = `${databasePath}-wal`;
    if (this.#unswept.size > 0) this.#replaceLeft(path);
    if (!isNew && isInUse(path))
      throw new Error(`another program has written to ${databasePath} and has it open`);
    const log = this.#spares.pop();
    if (log === undefined) return { fd: openSync(path, "w+", 0o600), spare: null };
    renameSync(log.spare as string, path);
    return log;
  }

  /** Takes the log from under SQLite, which then closes the database with it and finds nothing to remove. */
  putAside(databasePath: string, log: LogFile): void {
    this.#inUse.delete(`${databasePath}-wal`);
    this.#counter += 1;
    log.spare = join(this.#folder, String(this.#counter));
    renameSync(`${databasePath}-wal`, log.spare);
  }

  /** The log, of which so much was used, no longer is. */
  giveBack(log: LogFile, usedBytes: number): void {
    if (this.#spares.length < MAX_SPARES) {
      if (usedBytes > MAX_SPARE_BYTES) ftruncateSync(log.fd, 0);
      else if (usedBytes > 0) writeSync(log.fd, NO_HEADER, 0, NO_HEADER.length, 0);
      this.#spares.push(log);
    } else {
      closeSync(log.fd);
      rmSync(log.spare as string, { force: true });
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
    if (this.#unswept.size === 0) rmSync(this.#folder, { recursive: true, force: true });
  }

  /** Nothing of this process has the log: it would be known to be in use, or put aside. */
  #replaceLeft(path: string): void {
    if (this.#unswept.has(dirname(path))) rmSync(path, { force: true });
    this.#inUse.add(path);
  }

  async #sweep(): Promise<void> {
    for (const folder of this.#unswept) {
      if (this.#isClosed) return;
      let names: string[];
      try {
        names = await readdir(folder);
      } catch {
        // It stays unswept: its logs are replaced one by one, and the next start tries again.
        continue;
      }
      // No waiting from here on: what is not in use now is not taken into use meanwhile.
      for (const name of names) {
        const path = join(folder, name);
        if (name.endsWith("-wal") && !this.#inUse.has(path)) rmSync(path, { force: true });
      }
      this.#unswept.delete(folder);
    }
    if (this.#unswept.size === 0) this.#inUse.clear();
  }
}

function isInUse(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function foldersOf(root: string): string[] {
  return readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isDirectory() && entry.name !== "logs" && entry.name !== "journal")
    .map((entry) => join(root, entry.name));
}
