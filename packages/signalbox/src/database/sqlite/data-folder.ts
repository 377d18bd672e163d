/**
 * The data folder, locked by one process at a time.
 *
 * The lock is an open exclusive transaction on a small SQLite file: the operating system releases it when the process ends, so a stale lock cannot
 * exist. (Node.js has no flock, and a pid file would remain after a crash.)
 * See docs/decisions/0005.
 */
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { keepPrivate, SqliteConnection } from "../../engines/sqlite-file/index.ts";

/** The addresses of the process that uses the folder. */
export interface RunningServer {
  readonly url: string;
  /** Address of the management interface, if it is not `url`. */
  readonly adminUrl?: string;
  readonly pid: number;
  /** PEM of its TLS certificate: commands on this machine trust exactly this one, whatever its name and its issuer. */
  readonly certificate?: string;
}

export class DataFolder {
  readonly path: string;
  readonly #lock: SqliteConnection;

  private constructor(path: string, lock: SqliteConnection) {
    this.path = path;
    this.#lock = lock;
  }

  /** Creates the folder if necessary, and locks it. Throws if a restore into the folder was interrupted. */
  static open(path: string): DataFolder {
    const folder = DataFolder.#lockNew(path);
    if (!existsSync(folder.file(RESTORE_MARKER))) return folder;
    folder.close();
    throw new DataFolderError(
      `a restore into the data folder ${path} was interrupted, so its content is not complete; run "signalbox restore" again, with the same backup and this folder`,
    );
  }

  /** The same for a folder that must exist. */
  static openExisting(path: string): DataFolder {
    if (!existsSync(path)) throw new DataFolderError(`the data folder ${path} does not exist`);
    return DataFolder.open(path);
  }

  /** Locks a folder for a restore, which may have been interrupted before. */
  static openForRestore(path: string): DataFolder {
    return DataFolder.#lockNew(path);
  }

  static #lockNew(path: string): DataFolder {
    try {
      createFolder(path);
    } catch (cause) {
      throw new DataFolderError(`cannot create the data folder ${path}: ${reason(cause)}`, { cause });
    }
    return new DataFolder(path, takeLock(path));
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Writes the addresses of this process to a file, for command-line tools. */
  announce(server: RunningServer): void {
    writeFileSync(this.file(SERVER_FILE), `${JSON.stringify(server)}\n`, { mode: 0o600 });
  }

  close(): void {
    rmSync(this.file(SERVER_FILE), { force: true });
    this.#lock.close();
  }
}

/**
 * Creates the folder and those above it. Not `recursive`: where the system refuses a new folder with ENOENT although the one above exists, as in
 * /proc, Node repeats both steps for ever.
 */
function createFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
  const above = dirname(path);
  if (above !== path) createFolder(above);
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (error) {
    // Another process may have created it in the meantime.
    if (statSync(path, { throwIfNoEntry: false })?.isDirectory() === true) return;
    const { code } = error as NodeJS.ErrnoException;
    if (code === "EEXIST") throw new Error(`${path} is not a folder`, { cause: error });
    if (code === "ENOENT")
      throw new Error(`the file system of ${above} takes no new folders`, { cause: error });
    throw error;
  }
}

/** Exists while a restore writes to the folder. */
export const RESTORE_MARKER = "restore-incomplete";
export const LOCK_FILE = "lock";
const SERVER_FILE = "server.json";
const DATABASE_FILE = "signalbox.db";

/** True if a server or a restored backup has written to the folder. */
export function isDataFolder(path: string): boolean {
  return [LOCK_FILE, DATABASE_FILE].some((name) => existsSync(join(path, name)));
}

/** Returns the server that uses the folder; null if there is none, even if a crashed server left its file. */
export function findRunningServer(path: string): RunningServer | null {
  // Before the lock is tried: the attempt creates its file, and a server that starts at the same moment would find the folder in use.
  if (![LOCK_FILE, SERVER_FILE].every((name) => existsSync(join(path, name)))) return null;
  let lock: SqliteConnection | undefined;
  try {
    lock = openLock(path);
    return null;
  } catch (error) {
    if (!isBusy(error)) return null;
  } finally {
    lock?.close();
  }
  try {
    return JSON.parse(readFileSync(join(path, SERVER_FILE), "utf8")) as RunningServer;
  } catch {
    return null;
  }
}

function takeLock(path: string): SqliteConnection {
  try {
    return openLock(path);
  } catch (cause) {
    if (isBusy(cause)) {
      const server = findRunningServer(path);
      const who = server === null ? "another process" : `the process ${server.pid} at ${server.url}`;
      throw new DataFolderError(`the data folder ${path} is in use by ${who}`, { cause });
    }
    throw new DataFolderError(`cannot write to the data folder ${path}: ${reason(cause)}`, { cause });
  }
}

function openLock(path: string): SqliteConnection {
  const file = join(path, LOCK_FILE);
  // Who can read it can lock it.
  keepPrivate(file);
  const lock = SqliteConnection.open(file, { busyTimeoutMs: 0 });
  try {
    lock.exec("PRAGMA journal_mode = DELETE; PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;");
    return lock;
  } catch (error) {
    lock.close();
    throw error;
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof Error && /database is locked/.test(error.message);
}

function reason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
