/**
 * An open database whose history is in PostgreSQL: SQLite in WAL mode that never syncs. `sync` sends the frames of new commits to PostgreSQL.
 *
 * The local file is a cache, so the WAL is copied into it whenever the WAL is long, acknowledged or not: after a kill, or when the instance is
 * fenced, the file is thrown away. `seen` is the part of the WAL whose records are acknowledged.
 *
 * Invariants:
 * 1. A fenced database writes nothing, locally or to PostgreSQL, and answers no `sync`.
 * 2. A snapshot for PostgreSQL is the main file and the acknowledged frames of the WAL, read while no checkpoint runs, and only when everything in
 *    the main file is acknowledged. So a busy instance, whose last commits are never acknowledged, is neither stopped nor waited for.
 * 3. Descriptors of the main file are closed after SQLite has closed the database: closing any descriptor drops SQLite's POSIX locks.
 */
import { closeSync, fchmodSync, openSync, rmSync } from "node:fs";
import { SignalboxError } from "@signalbox/protocol";
import { writeWhole } from "../../durable-file/index.ts";
import { rawSql } from "../../../core/sql.ts";
import { isConstraint, SqliteConnection, unavailable } from "../../sqlite-file/index.ts";
import type { DiskRoom } from "../disk-room.ts";
import { GuardedDatabase } from "../guarded-database.ts";
import type { InstancePath } from "../instance-path.ts";
import type { BaseSchema } from "../instance-store.ts";
import type { CacheBudget } from "../wal/cache-budget.ts";
import type { SpareWal, WalFile } from "../wal/spare-wal.ts";
import { WalReader } from "../wal/wal-reader.ts";
import { PAGE_BYTES } from "../page-bytes.ts";
import type { ReservedNames } from "../reserved-names.ts";
import { requireVersion } from "../schema-version.ts";
import type { HeldInstance, OpenInstance } from "./held-instance.ts";
import type { Lane, PendingRecord } from "./lane.ts";
import { isSnapshotDue, type Snapshots } from "./snapshots.ts";

/** As in the journal engine: exclusive, no syncs, a small page cache. */
const SETTINGS = `PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = OFF; PRAGMA wal_autocheckpoint = 0;
  PRAGMA cache_size = 2; PRAGMA shrink_memory; PRAGMA temp_store = MEMORY; PRAGMA user_version; PRAGMA cache_size = -256;`;
const LARGE_CACHE = rawSql("PRAGMA cache_size = -1024");
const CHECKPOINT = rawSql("PRAGMA wal_checkpoint(PASSIVE)");
const MAX_WAL_BYTES = 8 * 1024 * 1024;
const NO_FRAMES = Buffer.alloc(0);

/** What all databases of a store share. */
export interface SharedDatabaseParts {
  readonly baseSchema: BaseSchema;
  readonly reserved: ReservedNames;
  readonly lane: (instance: HeldInstance) => Lane;
  readonly snapshots: Snapshots;
  readonly spareWal: SpareWal;
  readonly caches: CacheBudget;
  readonly room: DiskRoom;
  /** `isComplete`: the file has all records of the instance. */
  readonly onClose: (instance: HeldInstance, isComplete: boolean) => void;
}

export interface SharedDatabaseOptions {
  readonly place: InstancePath;
  readonly instance: HeldInstance;
  /** Null for an existing file. */
  readonly template: Uint8Array | null;
  readonly parts: SharedDatabaseParts;
}

export class SharedDatabase extends GuardedDatabase implements OpenInstance {
  readonly #place: InstancePath;
  readonly #instance: HeldInstance;
  readonly #parts: SharedDatabaseParts;
  readonly #wal: WalFile;
  readonly #reader: WalReader;
  /** The record of the last commits; null if nothing was committed. */
  #last: PendingRecord | null = null;
  /** Where the frames of a record end in the present WAL. */
  readonly #ends = new Map<PendingRecord, number>();
  /** The acknowledged part of the present WAL. */
  #seen = 0;
  /** The record of the last commits in the main file, if it was not acknowledged when they were copied. */
  #inMainFile: PendingRecord | null = null;
  #snapshot: Promise<void> | null = null;
  /** A descriptor of the main file. */
  #descriptor: number | null = null;
  #closed: Promise<void> | null = null;
  #hasLargeCache = false;
  /** SQLite has failed where it never should: the next start takes the database from PostgreSQL, not from the file. */
  #isDamaged = false;

  private constructor(options: SharedDatabaseOptions, connection: SqliteConnection, wal: WalFile) {
    const { place, instance, template, parts } = options;
    super(connection, template !== null, parts.room, parts.reserved);
    this.#place = place;
    this.#instance = instance;
    this.#parts = parts;
    this.#wal = wal;
    this.#reader = new WalReader(wal.fd);
    instance.open = this;
  }

  static open(options: SharedDatabaseOptions): SharedDatabase {
    const { template, parts } = options;
    const { path } = options.place;
    const { spareWal, baseSchema } = parts;
    const wal = spareWal.attach(path, template !== null);
    let connection: SqliteConnection | undefined;
    try {
      connection = SqliteConnection.open(path, { busyTimeoutMs: 0, takesQuotedText: true });
      if (template !== null) fill(path, template);
      connection.exec(SETTINGS);
      if (template === null) requireVersion(connection, baseSchema);
      return new SharedDatabase(options, connection, wal);
    } catch (error) {
      spareWal.detach(path, wal);
      connection?.close();
      spareWal.release(wal, Number.POSITIVE_INFINITY);
      rmSync(path, { force: true });
      throw error;
    }
  }

  override begin(): void {
    this.#instance.requireHeld();
    super.begin();
  }

  override commit(): void {
    this.#instance.requireHeld();
    try {
      super.commit();
    } catch (error) {
      if (error instanceof SignalboxError || isConstraint(error)) throw error;
      this.#isDamaged = true;
      throw unavailable("the local copy of the database is damaged", error);
    }
  }

  /** The process may end at any time, and its files with it: only PostgreSQL counts. */
  flush(): Promise<void> {
    return this.sync();
  }

  sync(): Promise<void> {
    const { fenced } = this.#instance;
    if (fenced !== null) return Promise.reject(fenced);
    this.#send();
    return this.#last?.done.promise ?? Promise.resolve();
  }

  /** A record of this instance is in PostgreSQL. */
  acknowledged(): void {
    for (const [record, end] of this.#ends) {
      if (!record.isDurable) break;
      this.#seen = end;
      this.#ends.delete(record);
    }
    if (this.#snapshot === null && this.#closed === null && isSnapshotDue(this.#instance)) this.#ship();
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    const isComplete = await this.#finish();
    const { spareWal, caches, onClose } = this.#parts;
    let isClean = false;
    try {
      spareWal.detach(this.#place.path, this.#wal);
      this.closeConnection();
      // A fenced database has commits that were not read: the next database must not take them for its own.
      spareWal.release(this.#wal, isComplete ? this.#reader.extent : Number.POSITIVE_INFINITY);
      isClean = true;
    } finally {
      // Whatever has failed: the file is worthless then, and the instance can be opened again.
      if (this.#descriptor !== null) closeSync(this.#descriptor);
      if (this.#hasLargeCache) caches.release();
      this.#instance.open = null;
      onClose(this.#instance, isComplete && isClean);
    }
  }

  /** True if the main file has everything, and PostgreSQL as well. */
  async #finish(): Promise<boolean> {
    try {
      await this.sync();
      // A database exists from its first orderly close, too.
      if (this.#instance.template !== null)
        await this.#parts.lane(this.#instance).append(this.#instance, PAGE_BYTES, NO_FRAMES).done.promise;
      await this.#snapshot;
      // On a full disk the file is not needed.
      return !this.#isDamaged && this.#checkpoint();
    } catch {
      // Fenced: whoever waited has the error. Any other failure costs the file in the cache.
      await this.#snapshot;
      return false;
    }
  }

  /** Also while a transaction is open: a caller may wait for commits before it. The reader returns whole transactions only. */
  #send(): void {
    const frames = this.#reader.read();
    if (frames.length === 0) return;
    const record = this.#parts.lane(this.#instance).append(this.#instance, this.#reader.pageBytes, frames);
    this.#ends.set(record, this.#reader.length);
    this.#last = record;
    if (this.#reader.length > MAX_WAL_BYTES) setImmediate(() => this.#checkpointLater());
  }

  #checkpointLater(): void {
    if (this.#closed !== null || this.#snapshot !== null || this.#reader.length <= MAX_WAL_BYTES) return;
    try {
      if (this.#checkpoint()) this.#enlargeCache();
    } catch {
      // For example on a full disk; tried again after the next commit.
    }
  }

  /** Copies the WAL into the main file. False if that is not possible now: a transaction is open. */
  #checkpoint(): boolean {
    if (this.connection.isInTransaction) return false;
    this.#send();
    if (this.#reader.length === 0) return true;
    const result = this.connection.get<{ log: number; checkpointed: number }>(CHECKPOINT);
    if (result?.log !== result?.checkpointed) return false;
    this.#reader.restart();
    this.#inMainFile = this.#last;
    this.#ends.clear();
    this.#seen = 0;
    return true;
  }

  /** Starts a snapshot, unless something in the main file is not acknowledged. */
  #ship(): void {
    if (this.#inMainFile !== null && !this.#inMainFile.isDurable) return;
    this.#descriptor ??= openSync(this.#place.path, "r");
    const files = { main: this.#descriptor, wal: this.#wal.fd, walEnd: this.#seen };
    const pageBytes = this.#reader.pageBytes || PAGE_BYTES;
    this.#snapshot = this.#parts.snapshots.write(this.#instance, files, pageBytes).finally(() => {
      this.#snapshot = null;
      this.#checkpointLater();
    });
  }

  #enlargeCache(): void {
    if (this.#hasLargeCache || !this.#parts.caches.acquire()) return;
    this.#hasLargeCache = true;
    this.connection.run(LARGE_CACHE);
  }
}

/** Writes the first content of a file that SQLite has created but neither read nor locked yet. */
function fill(path: string, bytes: Uint8Array): void {
  const file = openSync(path, "r+");
  try {
    fchmodSync(file, 0o600);
    writeWhole(file, bytes, 0);
  } finally {
    closeSync(file);
  }
}
