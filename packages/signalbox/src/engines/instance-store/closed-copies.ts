/** Copies closed databases. A database that is being copied is opened only when the copy has ended: an open database may be checkpointed. */
import { constants } from "node:fs";
import { copyFile, open, rm } from "node:fs/promises";
import { SqliteConnection } from "../sqlite-file/index.ts";

/** Where the header of a database holds `user_version` (SQLite file format, section 1.3). */
const USER_VERSION_OFFSET = 60;

export class ClosedCopies {
  readonly #mayHaveWal: boolean;
  readonly #running = new Map<string, Promise<boolean>>();

  /** `mayHaveWal`: a WAL beside a closed database holds commits: the plain engine leaves one on a full disk. Otherwise a WAL is worthless. */
  constructor(mayHaveWal: boolean) {
    this.#mayHaveWal = mayHaveWal;
  }

  isCopying(id: string): boolean {
    return this.#running.has(id);
  }

  /** Resolves when the current copy of the database has ended. */
  async ended(id: string): Promise<void> {
    await this.#running.get(id)?.catch(() => false);
  }

  /** The database must be closed and not being copied. False, and no file, if it does not exist or has no commit. */
  copy(id: string, from: string, to: string): Promise<boolean> {
    const copy = copyClosed(from, to, this.#mayHaveWal).finally(() => this.#running.delete(id));
    this.#running.set(id, copy);
    return copy;
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
