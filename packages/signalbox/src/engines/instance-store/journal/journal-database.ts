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
 * 2. No checkpoint runs during a copy: the main file does not change, and the WAL only grows.
 */
import { fdatasync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { isFullDisk } from "../../sqlite-file/index.ts";
import { copyDatabase } from "./copy-database.ts";
import type { DiskRoom } from "../disk-room.ts";
import { GuardedDatabase } from "../guarded-database.ts";
import type { InstancePath } from "../instance-path.ts";
import type { ReservedNames } from "../reserved-names.ts";
import { WalFiles, type WalParts } from "../wal/wal-files.ts";
import type { Entry, Journal } from "./journal.ts";

/** A checkpoint that failed before a close is retried after this time. */
const RETRY_MS = 250;

/** What all databases of a store share. */
export interface JournalDatabaseParts extends WalParts {
  readonly reserved: ReservedNames;
  readonly journal: Journal;
  readonly room: DiskRoom;
  readonly onClose: (id: string) => void;
}

const NOTHING_JOURNALLED: Entry = { durable: Promise.resolve(), isDurable: true };
const datasync = promisify(fdatasync);
const nextLoop = promisify(setImmediate);

export class JournalDatabase extends GuardedDatabase {
  readonly #place: InstancePath;
  readonly #parts: JournalDatabaseParts;
  readonly #files: WalFiles;
  /** The last record in the journal. */
  #journalled: Entry = NOTHING_JOURNALLED;
  #syncingMainFile: Promise<void> = Promise.resolve();
  /** Called at the end of the open transaction; a busy instance nearly always has one open. */
  #onTransactionEnd: (() => void)[] = [];
  #closed: Promise<void> | null = null;
  /** Copies of the database that are being written. */
  readonly #copies = new Set<Promise<void>>();

  private constructor(place: InstancePath, isNew: boolean, files: WalFiles, parts: JournalDatabaseParts) {
    super(files.connection, isNew, parts.room, parts.reserved);
    this.#place = place;
    this.#parts = parts;
    this.#files = files;
  }

  /** Creates the file as a copy of the template, or opens the existing file if the template is null. */
  static open(
    place: InstancePath,
    template: Uint8Array | null,
    parts: JournalDatabaseParts,
  ): JournalDatabase {
    return new JournalDatabase(place, template !== null, WalFiles.open(place.path, template, parts), parts);
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
    this.#syncingMainFile = datasync(this.#files.descriptors().main);
    await this.#syncingMainFile;
    return true;
  }

  /** Copies the last commit to a new file. Resolves with false if the database is being closed: copy the closed file. */
  async copyTo(path: string): Promise<boolean> {
    if (this.#closed !== null) return false;
    // The reader of the WAL is at the end of the last commit afterwards.
    this.#appendToJournal();
    const { end: walEnd, pageBytes } = this.#files;
    const copy = copyDatabase({ ...this.#files.descriptors(), walEnd, pageBytes }, path);
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
    this.#files.closeLater(descriptor);
  }

  close(): Promise<void> {
    this.#closed ??= this.#close();
    return this.#closed;
  }

  async #close(): Promise<void> {
    // If the journal fails, which ends the process, the WAL must not be checkpointed.
    await this.sync();
    await this.#syncingMainFile;
    await this.#copiesEnd();
    await this.#checkpointBeforeClose();
    this.#files.close(() => this.closeConnection(), true);
    this.#parts.onClose(this.#place.id);
  }

  #appendToJournal(): void {
    const frames = this.#files.read();
    if (frames.length === 0) return;
    const { id, key } = this.#place;
    this.#journalled = this.#parts.journal.committed(id, key, this.#files.pageBytes, frames);
    if (this.#files.isLong) void this.#checkpointSoon();
  }

  async #checkpointSoon(): Promise<void> {
    try {
      await this.#journalled.durable;
      await this.#transactionEnd();
      if (this.#closed !== null || !this.#files.isLong) return;
      if (this.#checkpoint()) this.#files.enlargeCache();
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
    return this.#files.checkpoint();
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
