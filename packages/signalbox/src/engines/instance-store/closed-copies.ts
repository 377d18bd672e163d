/** Copies and reads closed databases. A database that is being copied is opened only when the copy has ended: an open database may be checkpointed. */
import { close, constants, existsSync, fstat, open as openFile, read } from "node:fs";
import { copyFile, open, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { SqliteConnection } from "../sqlite-file/index.ts";

/** Where the header of a database holds `user_version` (SQLite file format, section 1.3). */
const USER_VERSION_OFFSET = 60;

export class ClosedCopies {
  readonly #mayHaveWal: boolean;
  readonly #running = new Map<string, Promise<unknown>>();

  /** `mayHaveWal`: a WAL beside a closed database holds commits: the plain engine leaves one on a full disk. Otherwise a WAL is worthless. */
  constructor(mayHaveWal: boolean) {
    this.#mayHaveWal = mayHaveWal;
  }

  isCopying(id: string): boolean {
    return this.#running.has(id);
  }

  /** Resolves when the current copy of the database has ended. */
  async ended(id: string): Promise<void> {
    // Whoever copies it receives the failure.
    await this.#running.get(id)?.catch(() => undefined);
  }

  /** The database must be closed and not being copied. False, and no file, if it does not exist or has no commit. */
  copy(id: string, from: string, to: string): Promise<boolean> {
    return this.#run(id, copyClosed(from, to, this.#mayHaveWal));
  }

  /** The content of the database, which must be closed and not being copied; null if it is larger, does not exist, or has no commit in this file. */
  read(id: string, from: string, maxBytes: number): Promise<Uint8Array | null> {
    if (this.#mayHaveWal && existsSync(`${from}-wal`)) return Promise.resolve(null);
    return this.#run(id, readClosed(from, maxBytes));
  }

  #run<T>(id: string, work: Promise<T>): Promise<T> {
    const running = work.finally(() => this.#running.delete(id));
    this.#running.set(id, running);
    return running;
  }
}

/** Functions with callbacks: a file handle takes a third more time of the event loop, and there are a hundred thousand files. */
const file = {
  open: promisify(openFile),
  stat: promisify(fstat),
  read: promisify(read),
  close: promisify(close),
};

async function readClosed(from: string, maxBytes: number): Promise<Uint8Array | null> {
  let descriptor: number;
  try {
    descriptor = await file.open(from, "r");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
  try {
    const { size } = await file.stat(descriptor);
    if (size > maxBytes || size < USER_VERSION_OFFSET + 4) return null;
    const bytes = Buffer.allocUnsafe(size);
    const { bytesRead } = await file.read(descriptor, bytes, 0, size, 0);
    return bytesRead === size && bytes.readUInt32BE(USER_VERSION_OFFSET) > 0 ? bytes : null;
  } finally {
    await file.close(descriptor);
  }
}

async function copyClosed(from: string, to: string, mayHaveWal: boolean): Promise<boolean> {
  if (!(await copyIfThere(from, to))) return false;
  if (mayHaveWal && (await copyIfThere(`${from}-wal`, `${to}-wal`))) checkpoint(to);
  if ((await readVersion(to)) > 0) return true;
  await rm(to, { force: true });
  return false;
}

async function copyIfThere(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

function checkpoint(path: string): void {
  const connection = SqliteConnection.open(path, { takesQuotedText: true });
  try {
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
}

async function readVersion(path: string): Promise<number> {
  const file = await open(path, "r");
  try {
    const bytes = Buffer.alloc(4);
    await file.read(bytes, 0, bytes.length, USER_VERSION_OFFSET);
    return bytes.readUInt32BE(0);
  } finally {
    await file.close();
  }
}
