/**
 * An open database of the journal engine: SQLite in WAL mode that never syncs by itself. `sync` copies the frames of new commits from the WAL to the
 * journal and waits for the journal's sync.
 *
 * The WAL of an open database:
 *
 *   empty ──commit──► committed ──frames appended to the journal──► journalled ──sync of the journal──► durable ──checkpoint──► empty
 *
 * A commit in any state leads back to `committed`.
 *
 * Invariants:
 * 1. Only a durable WAL is checkpointed into the main file: a replay of the journal writes its pages over the main file, so the main file must
 *    not have later pages than the journal.
 * 2. Descriptors of the main file are closed after SQLite has closed the database: closing any descriptor drops SQLite's POSIX locks.
 * 3. No checkpoint runs during a copy: the main file does not change, and the WAL only grows.
 */
import { closeSync, fchmodSync, fdatasync, openSync, rmSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { writeWhole } from "../../durable-file/index.ts";
import { rawSql } from "../../../core/sql.ts";
import { isFullDisk, SqliteConnection } from "../../sqlite-file/index.ts";
import { copyDatabase } from "./copy-database.ts";
import type { DiskRoom } from "../disk-room.ts";
import { GuardedDatabase } from "../guarded-database.ts";
import type { InstancePath } from "../instance-path.ts";
import type { BaseSchema } from "../instance-store.ts";
import type { ReservedNames } from "../reserved-names.ts";
import { requireVersion } from "../schema-version.ts";
import type { CacheBudget } from "./cache-budget.ts";
import type { Entry, Journal } from "./journal.ts";
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
/** A checkpoint that failed before a close is retried after this time. */
const RETRY_MS = 250;

/** What all databases of a store share. */
export interface JournalDatabaseParts {
  readonly baseSchema: BaseSchema;
  readonly reserved: ReservedNames;
  readonly journal: Journal;
  readonly spareWal: SpareWal;
  readonly caches: CacheBudget;
  readonly room: DiskRoom;
  readonly onClose: (id: string) => void;
}

const NOTHING_JOURNALLED: Entry = { durable: Promise.resolve(), isDurable: true };
const datasync = promisify(fdatasync);
const nextLoop = promisify(setImmediate);

export class JournalDatabase extends GuardedDatabase {
  readonly #place: InstancePath;
  readonly #parts: JournalDatabaseParts;
  readonly #wal: WalFile;
  readonly #reader: WalReader;
  /** The last record in the journal. */
  #journalled: Entry = NOTHING_JOURNALLED;
  /** Descriptors of the main file. */
  readonly #descriptors: number[] = [];
  #syncingMainFile: Promise<void> = Promise.resolve();
  /** Called at the end of the open transaction; a busy instance nearly always has one open. */
  #onTransactionEnd: (() => void)[] = [];
  #closed: Promise<void> | null = null;
  #hasLargeCache = false;
  /** Copies of the database that are being written. */
  readonly #copies = new Set<Promise<void>>();

  private constructor(
    place: InstancePath,
    isNew: boolean,
    connection: SqliteConnection,
    wal: WalFile,
    parts: JournalDatabaseParts,
  ) {
    super(connection, isNew, parts.room, parts.reserved);
    this.#place = place;
    this.#parts = parts;
    this.#wal = wal;
    this.#reader = new WalReader(wal.fd);
  }

  /** Creates the file as a copy of the template, or opens the existing file if the template is null. */
  static open(
    place: InstancePath,
    template: Uint8Array | null,
    parts: JournalDatabaseParts,
  ): JournalDatabase {
    const { spareWal, baseSchema } = parts;
    const { path } = place;
    const isNew = template !== null;
    const wal = spareWal.attach(path, isNew);
    let connection: SqliteConnection | undefined;
    try {
      connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
      if (isNew) fill(path, template);
      connection.exec(SETTINGS);
      if (!isNew) requireVersion(connection, baseSchema);
      return new JournalDatabase(place, isNew, connection, wal, parts);
    } catch (error) {
      spareWal.detach(path, wal);
      connection?.close();
      spareWal.release(wal, Number.POSITIVE_INFINITY);
      // An incomplete file would count as an existing instance.
      if (isNew) rmSync(path, { force: true });
      throw error;
    }
  }

  override commit(): void {
    super.commit();
    this.#transactionEnded();
  }

  override rollback(): void {
    super.rollback();
    this.#transactionEnded();
  }

  flush(): null {
    this.#appendToJournal();
    this.#parts.journal.writeNow();
    return null;
  }

  sync(): Promise<void> {
    this.#appendToJournal();
    return this.#journalled.durable;
  }

  /** Checkpoints and syncs the main file, so that it holds all current commits. Resolves with false if the database was closed first. */
  async syncMainFile(): Promise<boolean> {
    do {
      await this.sync();
      await this.#copiesEnd();
      await this.#transactionEnd();
      if (this.#closed !== null) return false;
    } while (!this.#checkpoint());
    this.#syncingMainFile = datasync(this.#mainFile());
    await this.#syncingMainFile;
    return true;
  }

  /** Copies the last commit to a new file. Resolves with false if the database is being closed: copy the closed file. */
  async copyTo(path: string): Promise<boolean> {
    if (this.#closed !== null) return false;
    // The reader of the WAL is at the end of the last commit afterwards.
    this.#appendToJournal();
    const { length: walEnd, pageBytes } = this.#reader;
    const copy = copyDatabase({ main: this.#mainFile(), wal: this.#wal.fd, walEnd, pageBytes }, path);
    this.#copies.add(copy);
    try {
      await copy;
    } finally {
      this.#copies.delete(copy);
    }
    return true;
  }

  /** Takes a descriptor of the main file and closes it after SQLite has closed the database. */
  closeLater(descriptor: number): void {
    this.#descriptors.push(descriptor);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const { spareWal, caches, onClose } = this.#parts;
    // If the journal fails, which ends the process, the WAL must not be checkpointed.
    await this.sync();
    await this.#syncingMainFile;
    await this.#copiesEnd();
    await this.#checkpointBeforeClose();
    spareWal.detach(this.#place.path, this.#wal);
    this.closeConnection();
    spareWal.release(this.#wal, this.#reader.extent);
    for (const descriptor of this.#descriptors) closeSync(descriptor);
    if (this.#hasLargeCache) caches.release();
    onClose(this.#place.id);
  }

  #appendToJournal(): void {
    const frames = this.#reader.read();
    if (frames.length === 0) return;
    const { id, key } = this.#place;
    this.#journalled = this.#parts.journal.committed(id, key, this.#reader.pageBytes, frames);
    if (this.#reader.length > MAX_WAL_BYTES) void this.#checkpointSoon();
  }

  async #checkpointSoon(): Promise<void> {
    try {
      await this.#journalled.durable;
      await this.#transactionEnd();
      if (this.#closed !== null || this.#reader.length <= MAX_WAL_BYTES) return;
      if (this.#checkpoint()) this.#enlargeCache();
    } catch {
      // A failed sync is reported by `sync`. A failed checkpoint, for example on a full disk, is retried after the next commit.
    }
  }

  /** SQLite checkpoints at close, but does not report a failure; and the WAL, the only copy outside the journal, is reused. */
  async #checkpointBeforeClose(): Promise<void> {
    let endWait: (() => void) | null = null;
    for (;;) {
      try {
        if (this.#checkpoint()) break;
      } catch (error) {
        if (!isFullDisk(error)) throw error;
        endWait ??= this.room.wait("a database that is being closed", error);
      }
      await sleep(RETRY_MS);
    }
    endWait?.();
  }

  /**
   * Copies the WAL into the main file. False if the checkpoint has to be retried: while a transaction is open (turns that end before the next
   * sync share one transaction, which may stay open over several iterations of the event loop), or if the WAL cannot be made durable at once.
   */
  #checkpoint(): boolean {
    if (this.connection.isInTransaction || this.#copies.size > 0) return false;
    // Of a busy instance the last commits are never durable, so they are synced here, blocking the event loop.
    this.#appendToJournal();
    if (!this.#journalled.isDurable && !this.#parts.journal.syncNow()) return false;
    if (this.#reader.length === 0) return true;
    const result = this.connection.get<{ log: number; checkpointed: number }>(CHECKPOINT);
    if (result?.log !== result?.checkpointed) return false;
    this.#reader.restart();
    return true;
  }

  #enlargeCache(): void {
    if (this.#hasLargeCache || !this.#parts.caches.acquire()) return;
    this.#hasLargeCache = true;
    this.connection.run(LARGE_CACHE);
  }

  #mainFile(): number {
    const [descriptor = openSync(this.#place.path, "r")] = this.#descriptors;
    this.#descriptors[0] = descriptor;
    return descriptor;
  }

  async #copiesEnd(): Promise<void> {
    while (this.#copies.size > 0) await Promise.allSettled(this.#copies);
  }

  #transactionEnd(): Promise<void> {
    if (!this.connection.isInTransaction) return nextLoop();
    return new Promise((resolve) => this.#onTransactionEnd.push(resolve));
  }

  #transactionEnded(): void {
    if (this.#onTransactionEnd.length > 0) for (const resolve of this.#onTransactionEnd.splice(0)) resolve();
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
