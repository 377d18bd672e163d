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
 */
import { rmSync } from "node:fs";
import { SignalboxError } from "@signalbox/protocol";
import { isConstraint, unavailable } from "../../sqlite-file/index.ts";
import type { DiskRoom } from "../disk-room.ts";
import { GuardedDatabase } from "../guarded-database.ts";
import type { InstancePath } from "../instance-path.ts";
import { PAGE_BYTES } from "../page-bytes.ts";
import type { ReservedNames } from "../reserved-names.ts";
import { WalFiles, type WalParts } from "../wal/wal-files.ts";
import type { HeldInstance, OpenInstance } from "./held-instance.ts";
import type { Lane, PendingRecord } from "./lane.ts";
import { isSnapshotDue, type Snapshots } from "./snapshots.ts";

const NO_FRAMES = Buffer.alloc(0);

/** What all databases of a store share. */
export interface SharedDatabaseParts extends WalParts {
  readonly reserved: ReservedNames;
  readonly lane: (instance: HeldInstance) => Lane;
  readonly snapshots: Snapshots;
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
  readonly #instance: HeldInstance;
  readonly #parts: SharedDatabaseParts;
  readonly #files: WalFiles;
  /** The record of the last commits; null if nothing was committed. */
  #last: PendingRecord | null = null;
  /** Where the frames of a record end in the current WAL. */
  readonly #ends = new Map<PendingRecord, number>();
  /** The acknowledged part of the current WAL. */
  #seen = 0;
  /** The record of the last commits in the main file, if it was not acknowledged when they were copied. */
  #inMainFile: PendingRecord | null = null;
  #snapshot: Promise<void> | null = null;
  #closed: Promise<void> | null = null;
  /** SQLite has failed where it never should: the next start takes the database from PostgreSQL, not from the file. */
  #isDamaged = false;

  private constructor(files: WalFiles, { instance, template, parts }: SharedDatabaseOptions) {
    super(files.connection, template !== null, parts.room, parts.reserved);
    this.#instance = instance;
    this.#parts = parts;
    this.#files = files;
    instance.open = this;
  }

  static open(options: SharedDatabaseOptions): SharedDatabase {
    const { path } = options.place;
    let files: WalFiles;
    try {
      files = WalFiles.open(path, options.template, options.parts);
    } catch (error) {
      // Only a copy: the next start takes the database from PostgreSQL.
      rmSync(path, { force: true });
      throw error;
    }
    return new SharedDatabase(files, options);
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
    let isClean = false;
    try {
      // A fenced database has commits that were not read.
      this.#files.close(() => this.closeConnection(), isComplete);
      isClean = true;
    } finally {
      // Whatever has failed: the file is worthless then, and the instance can be opened again.
      this.#instance.open = null;
      this.#parts.onClose(this.#instance, isComplete && isClean);
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
      // Fenced: the callers that waited have the error. Any other failure costs the file in the cache.
      await this.#snapshot;
      return false;
    }
  }

  /** Also while a transaction is open: a caller may wait for commits before it. The reader returns whole transactions only. */
  #send(): void {
    const frames = this.#files.read();
    if (frames.length === 0) return;
    const record = this.#parts.lane(this.#instance).append(this.#instance, this.#files.pageBytes, frames);
    this.#ends.set(record, this.#files.end);
    this.#last = record;
    if (this.#files.isLong) setImmediate(() => this.#checkpointLater());
  }

  #checkpointLater(): void {
    if (this.#closed !== null || this.#snapshot !== null || !this.#files.isLong) return;
    try {
      if (this.#checkpoint()) this.#files.enlargeCache();
    } catch {
      // For example on a full disk; tried again after the next commit.
    }
  }

  /** Copies the WAL into the main file. False if that is not possible now: a transaction is open. */
  #checkpoint(): boolean {
    if (this.connection.isInTransaction) return false;
    this.#send();
    if (this.#files.end === 0) return true;
    if (!this.#files.checkpoint()) return false;
    this.#inMainFile = this.#last;
    this.#ends.clear();
    this.#seen = 0;
    return true;
  }

  /** Starts a snapshot, unless something in the main file is not acknowledged. */
  #ship(): void {
    if (this.#inMainFile !== null && !this.#inMainFile.isDurable) return;
    const files = { ...this.#files.descriptors(), walEnd: this.#seen };
    const pageBytes = this.#files.pageBytes || PAGE_BYTES;
    this.#snapshot = this.#parts.snapshots.write(this.#instance, files, pageBytes).finally(() => {
      this.#snapshot = null;
      this.#checkpointLater();
    });
  }
}
