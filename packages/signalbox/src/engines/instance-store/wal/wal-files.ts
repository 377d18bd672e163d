/**
 * The files of an open database that SQLite never syncs: the main file, and a WAL whose frames its owner makes durable elsewhere, in the journal or
 * in PostgreSQL.
 *
 *   empty ──commit──► committed ──`read`──► given to the owner ──checkpoint──► empty
 *
 * A commit in any state leads back to `committed`. The owner decides when a checkpoint is safe.
 *
 * Invariants:
 * 1. The owner receives whole transactions, in order, and each frame once.
 * 2. Descriptors of the main file are closed after SQLite has closed the database: closing any descriptor drops SQLite's POSIX locks.
 */
import { closeSync, fchmodSync, openSync, rmSync } from "node:fs";
import { rawSql } from "../../../core/sql.ts";
import { writeWhole } from "../../durable-file/index.ts";
import { SqliteConnection } from "../../sqlite-file/index.ts";
import type { BaseSchema } from "../instance-store.ts";
import { requireVersion } from "../schema-version.ts";
import type { CacheBudget } from "./cache-budget.ts";
import type { SpareWal, WalFile } from "./spare-wal.ts";
import { WalReader } from "./wal-reader.ts";

/**
 * Exclusive: no other connection opens the database, and SQLite needs no shared-memory file. The page cache is limited to 256 KiB. The cache is
 * created with two pages, because SQLite allocates twenty pages at once for any larger cache.
 */
const SETTINGS = `PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;
  PRAGMA cache_size = 2; PRAGMA shrink_memory; PRAGMA temp_store = MEMORY; PRAGMA user_version; PRAGMA cache_size = -256;`;
/** For an instance that has filled its WAL once: a hundred rows of 4 KB fit, with room to spare. */
const LARGE_CACHE = rawSql("PRAGMA cache_size = -1024");
/** Copies the WAL into the main file; the next commit starts the WAL over. */
const CHECKPOINT = rawSql("PRAGMA wal_checkpoint(PASSIVE)");
/** An event of 4 KB writes dozens of pages of 1 KiB: a limit of a few hundred pages would slow a busy instance down. */
const MAX_WAL_BYTES = 8 * 1024 * 1024;

/** What all databases of a store share. */
export interface WalParts {
  readonly baseSchema: BaseSchema;
  readonly spareWal: SpareWal;
  readonly caches: CacheBudget;
}

export class WalFiles {
  readonly connection: SqliteConnection;
  readonly #path: string;
  readonly #parts: WalParts;
  readonly #wal: WalFile;
  readonly #reader: WalReader;
  /** Of the main file. */
  readonly #descriptors: number[] = [];
  #hasLargeCache = false;

  private constructor(path: string, connection: SqliteConnection, wal: WalFile, parts: WalParts) {
    this.#path = path;
    this.connection = connection;
    this.#parts = parts;
    this.#wal = wal;
    this.#reader = new WalReader(wal.fd);
  }

  /** Creates the file as a copy of the template, or opens the existing file if the template is null. */
  static open(path: string, template: Uint8Array | null, parts: WalParts): WalFiles {
    const { spareWal, baseSchema } = parts;
    const isNew = template !== null;
    const wal = spareWal.attach(path, isNew);
    let connection: SqliteConnection | undefined;
    try {
      connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
      if (isNew) fill(path, template);
      connection.exec(SETTINGS);
      if (!isNew) requireVersion(connection, baseSchema);
      return new WalFiles(path, connection, wal, parts);
    } catch (error) {
      spareWal.detach(path, wal);
      connection?.close();
      spareWal.release(wal, Number.POSITIVE_INFINITY);
      // An incomplete file would count as an existing instance.
      if (isNew) rmSync(path, { force: true });
      throw error;
    }
  }

  /** The frames of commits since the last call; valid until the next `read` of any database. */
  read(): Buffer {
    return this.#reader.read();
  }

  get pageBytes(): number {
    return this.#reader.pageBytes;
  }

  /** Where the frames that were read end in the current WAL. */
  get end(): number {
    return this.#reader.length;
  }

  /** A checkpoint is due. */
  get isLong(): boolean {
    return this.#reader.length > MAX_WAL_BYTES;
  }

  /** Descriptors of the main file and of the WAL, for readers; not to be closed. */
  descriptors(): { readonly main: number; readonly wal: number } {
    return { main: this.#mainFile(), wal: this.#wal.fd };
  }

  /** Takes a descriptor of the main file. */
  closeLater(descriptor: number): void {
    this.#descriptors.push(descriptor);
  }

  /** Copies the WAL, of which everything was read, into the main file. False if SQLite could not copy all of it. */
  checkpoint(): boolean {
    if (this.#reader.length === 0) return true;
    const result = this.connection.get<{ log: number; checkpointed: number }>(CHECKPOINT);
    if (result?.log !== result?.checkpointed) return false;
    this.#reader.restart();
    return true;
  }

  enlargeCache(): void {
    if (this.#hasLargeCache || !this.#parts.caches.acquire()) return;
    this.#hasLargeCache = true;
    this.connection.run(LARGE_CACHE);
  }

  /** `isRead` is false if the WAL may have commits that were not read: the next database must not take them for its own. */
  close(closeConnection: () => void, isRead: boolean): void {
    const { spareWal, caches } = this.#parts;
    try {
      spareWal.detach(this.#path, this.#wal);
      closeConnection();
      spareWal.release(this.#wal, isRead ? this.#reader.extent : Number.POSITIVE_INFINITY);
    } finally {
      for (const descriptor of this.#descriptors) closeSync(descriptor);
      if (this.#hasLargeCache) caches.release();
    }
  }

  #mainFile(): number {
    const [descriptor = openSync(this.#path, "r")] = this.#descriptors;
    this.#descriptors[0] = descriptor;
    return descriptor;
  }
}

/**
 * Writes the first content of a file that SQLite has created but neither read nor locked yet. SQLite creates the file, because for an existing file
 * SQLite searches the list of all files it has open. The calls are synchronous: each is faster than a trip to the thread pool.
 */
function fill(path: string, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  try {
    fchmodSync(file, 0o600);
    writeWhole(file, bytes, 0);
  } finally {
    closeSync(file);
  }
}
