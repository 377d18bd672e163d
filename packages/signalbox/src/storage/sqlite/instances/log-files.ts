/**
 * SQLite's log files (`-wal`) of open instances. SQLite would create one whenever it opens a database and remove it at the close, and making an
 * inode is the dearest thing a file system is asked for when an instance wakes; so they are put aside and used again, under another name.
 *
 * Invariants:
 * 1. A log that an instance starts with is empty. What the logs of a process that was killed hold is of no use: the journal has it, or nobody
 *    was told of it. They are removed at the next start, which the folder of spare logs, gone after an orderly stop, tells to do so.
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
import { join } from "node:path";
import { syncFolder } from "../sync-folder.ts";
import { WAL_HEADER_BYTES } from "./journal/wal-frames.ts";

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

  constructor(root: string) {
    this.#folder = join(root, "logs");
    if (existsSync(this.#folder)) removeLeftLogs(root);
    mkdirSync(this.#folder, { recursive: true, mode: 0o700 });
    syncFolder(root);
  }

  /** Gives the database an empty log before SQLite opens it. Nobody else can have one open that `isNew`. */
  lay(databasePath: string, isNew: boolean): LogFile {
    const path = `${databasePath}-wal`;
    if (!isNew && isInUse(path))
      throw new Error(`another program has written to ${databasePath} and has it open`);
    const log = this.#spares.pop();
    if (log === undefined) return { fd: openSync(path, "w+", 0o600), spare: null };
    renameSync(log.spare as string, path);
    return log;
  }

  /** Takes the log from under SQLite, which then closes the database with it and finds nothing to remove. */
  putAside(databasePath: string, log: LogFile): void {
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

  close(): void {
    for (const log of this.#spares) closeSync(log.fd);
    this.#spares = [];
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

function isInUse(path: string): boolean {
  return (statSync(path, { throwIfNoEntry: false })?.size ?? 0) > 0;
}

function removeLeftLogs(root: string): void {
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (entry.name.endsWith("-wal")) rmSync(join(entry.parentPath, entry.name), { force: true });
  }
  rmSync(join(root, "logs"), { recursive: true, force: true });
}
