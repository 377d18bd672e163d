/**
 * The data folder, locked by one process at a time.
 *
 * The lock is an open exclusive transaction on a small SQLite file: the operating system releases it when the process ends, so a stale lock cannot
 * exist. (Node.js has no flock, and a pid file would remain after a crash.)
 * See docs/decisions/0005.
 */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { SqliteConnection } from "../../engines/sqlite-file/index.ts";

/** The addresses of the process that uses the folder. */
export interface RunningServer {
  readonly url: string;
  /** Address of the management interface, if it is not `url`. */
  readonly adminUrl?: string;
  readonly pid: number;
}

export class DataFolder {
  readonly path: string;
  readonly #lock: SqliteConnection;

  private constructor(path: string, lock: SqliteConnection) {
    this.path = path;
    this.#lock = lock;
  }

  /** Creates the folder if necessary, and locks it. */
  static open(path: string): DataFolder {
    try {
      mkdirSync(path, { recursive: true, mode: 0o700 });
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

const LOCK_FILE = "lock";
const SERVER_FILE = "server.json";

/** Returns the server that uses the folder; null if there is none, even if a crashed server left its file. */
export function findRunningServer(path: string): RunningServer | null {
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
  const lock = SqliteConnection.open(join(path, LOCK_FILE), { busyTimeoutMs: 0 });
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
