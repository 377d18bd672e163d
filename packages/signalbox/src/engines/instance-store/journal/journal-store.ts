/**
 * The journal engine: databases whose commits become durable through one journal (`journal.ts`) with one sync for all instances.
 *
 * Invariants:
 * 1. A database file is created only after its creation is durable in the journal, so that a replay completes a file that a power failure left
 *    incomplete.
 * 2. `destroy` is called for closed databases, whose WAL is checkpointed. The file is removed after the removal is durable in the journal.
 */
import { closeSync, existsSync, fdatasync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import type { SqlQuery } from "../../../core/sql.ts";
import { syncFolder } from "../../durable-file/index.ts";
import { isFullDisk } from "../../sqlite-file/index.ts";
import { DiskRoom } from "../disk-room.ts";
import { FolderSync } from "../folder-sync.ts";
import { ImmutableDatabase } from "../immutable-database.ts";
import { ClosedCopies } from "../closed-copies.ts";
import { type InstancePath, InstancePaths } from "../instance-path.ts";
import type {
  InstanceDatabase,
  InstanceStoreOptions,
  LocalInstanceStore,
  QueryLimits,
  QueryResult,
} from "../instance-store.ts";
import { queryInProcess } from "../read-only-query.ts";
import { prepareReplacement, type Replacement, toFrames } from "../replacement.ts";
import { ReservedNames } from "../reserved-names.ts";
import { CacheBudget } from "../wal/cache-budget.ts";
import { JournalDatabase, type JournalDatabaseParts } from "./journal-database.ts";
import { Journal } from "./journal.ts";
import { SpareWal } from "../wal/spare-wal.ts";
import { Templates } from "./template.ts";
import { UnsyncedNames } from "./unsynced-names.ts";

const JOURNAL_FOLDER = "journal";
/** A file that could not be written on a full disk is written again after this time. */
const RETRY_MS = 250;

export class JournalStore implements LocalInstanceStore {
  readonly #paths: InstancePaths;
  readonly #folderSync: FolderSync;
  readonly #journal: Journal;
  readonly #templates: Templates;
  readonly #room: DiskRoom;
  readonly #spareWal: SpareWal;
  readonly #parts: JournalDatabaseParts;
  /** By id; null while the database is being opened or destroyed. */
  readonly #open = new Map<string, JournalDatabase | null>();
  readonly #copies = new ClosedCopies(false);
  /** Databases whose new content is in the journal, or will be, and not yet in the file. */
  readonly #replacing = new Map<string, Promise<void>>();
  readonly #newNames: UnsyncedNames;
  readonly #onFailure: (error: Error) => void;
  #foldersCreated: Promise<void> | undefined;

  /** Replays the journal of the last process first. */
  constructor(options: InstanceStoreOptions) {
    const { folder, baseSchema, reservedNames, segmentBytes, onFailure, onStall } = options;
    this.#onFailure = onFailure;
    this.#folderSync = new FolderSync(onFailure);
    this.#paths = new InstancePaths(folder);
    this.#room = new DiskRoom(this.#paths.root, onStall);
    this.#newNames = new UnsyncedNames(this.#folderSync);
    this.#templates = new Templates(baseSchema);
    const { journal, replayed } = Journal.open({
      folder: join(folder, JOURNAL_FOLDER),
      folderSync: this.#folderSync,
      template: this.#templates.find(),
      pathOf: (id) => this.#paths.of(id),
      checkpoint: (id) => this.#checkpoint(id),
      onFailure,
      onStall: (error) => this.#room.wait("the journal", error),
      segmentBytes,
    });
    this.#journal = journal;
    this.#spareWal = new SpareWal(folder, this.#folderSync);
    this.#parts = {
      baseSchema,
      reserved: new ReservedNames(reservedNames),
      journal,
      spareWal: this.#spareWal,
      caches: new CacheBudget(),
      room: this.#room,
      onClose: (id) => void this.#open.delete(id),
    };
    for (const id of replayed) this.#newNames.add(this.#paths.of(id));
  }

  /** Replays the journal of a crashed process and removes its WAL files, so that only the databases hold commits. */
  static async recover(options: InstanceStoreOptions): Promise<void> {
    const { folder } = options;
    const journal = join(folder, JOURNAL_FOLDER);
    const isJournalEmpty = !existsSync(journal) || readdirSync(journal).length === 0;
    if (isJournalEmpty && !SpareWal.isLeftIn(folder)) return;
    const store = new JournalStore(options);
    await store.#spareWal.swept;
    await store.close();
    if (SpareWal.isLeftIn(folder))
      throw new Error(`WAL files of a crashed process in ${folder} could not be removed`);
    syncFolder(folder);
  }

  async open(name: string, schema = ""): Promise<InstanceDatabase> {
    const place = this.#paths.find(name);
    const { id, key, path } = place;
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    if (this.#open.has(id)) throw new Error("the instance's database is open already");
    this.#room.require();
    this.#open.set(id, null);
    try {
      const template = existsSync(path) ? null : this.#templates.find(schema);
      if (template !== null) {
        this.#foldersCreated ??= this.#createFolders();
        await this.#foldersCreated;
        await this.#journal.created(id, key, template);
        this.#newNames.add(path);
      }
      const database = JournalDatabase.open(place, template?.bytes ?? null, this.#parts);
      this.#open.set(id, database);
      return database;
    } catch (error) {
      this.#open.delete(id);
      throw this.#room.explain(error);
    }
  }

  async openToRead(name: string): Promise<InstanceDatabase> {
    const { id, path } = this.#paths.find(name);
    const isClosed = existsSync(path) && !this.#open.has(id);
    return this.#room.problem !== null && isClosed ? new ImmutableDatabase(path) : this.open(name);
  }

  async destroy(name: string): Promise<void> {
    const { id, key, path } = this.#paths.find(name);
    if (this.#open.has(id)) throw new Error("the instance's database is open");
    if (!existsSync(path)) return;
    // Nothing opens it meanwhile.
    this.#open.set(id, null);
    try {
      await this.#journal.destroyed(id, key);
      rmSync(path, { force: true });
      await this.#folderSync.sync(dirname(path));
    } finally {
      this.#open.delete(id);
    }
  }

  async replace(name: string, content: Uint8Array, statements: readonly SqlQuery[] = []): Promise<void> {
    const place = this.#paths.find(name);
    const { id, path } = place;
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    if (this.#open.has(id)) throw new Error("the instance's database is open");
    if (!existsSync(path)) throw new Error("the instance has no database");
    this.#room.require();
    const replacement = prepareReplacement(content, statements);
    // Nothing opens it meanwhile.
    this.#open.set(id, null);
    const written = this.#writeReplacement(place, replacement);
    this.#replacing.set(id, written);
    try {
      await written;
    } finally {
      this.#replacing.delete(id);
      this.#open.delete(id);
    }
  }

  /** The journal first: the main file must not have later pages than the journal. From then on the file is written whatever it takes. */
  async #writeReplacement({ id, key, path }: InstancePath, replacement: Replacement): Promise<void> {
    const { bytes, pageBytes } = replacement;
    await this.#journal.committed(id, key, pageBytes, toFrames(replacement)).durable;
    let endWait: (() => void) | null = null;
    for (;;) {
      try {
        writeFileSync(path, bytes);
        break;
      } catch (error) {
        if (!(error instanceof Error) || !isFullDisk(error)) {
          // The next start replays the journal.
          this.#onFailure(error instanceof Error ? error : new Error(String(error)));
          throw error;
        }
        endWait ??= this.#room.wait("a database that is being restored", error);
      }
      await sleep(RETRY_MS);
    }
    endWait?.();
  }

  listIds(): Iterable<string> {
    return this.#paths.list();
  }

  async copy(id: string, path: string): Promise<boolean> {
    for (;;) {
      while (this.#copies.isCopying(id)) await this.#copies.ended(id);
      const database = this.#open.get(id);
      if (database === undefined) return this.#copies.copy(id, this.#paths.of(id), path);
      if (database !== null && (await database.copyTo(path))) return true;
      // It is being opened, or closed.
      await (database?.close() ?? sleep(1));
    }
  }

  async readClosed(id: string, maxBytes: number): Promise<Uint8Array | null> {
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    return this.#open.has(id) ? null : this.#copies.read(id, this.#paths.of(id), maxBytes);
  }

  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult> {
    return queryInProcess(snapshot, text, limits);
  }

  get problem(): string | null {
    return this.#room.problem;
  }

  requireRoom(): void {
    this.#room.require();
  }

  async close(): Promise<void> {
    await this.#journal.close();
    await this.#room.close();
    await this.#spareWal.close();
  }

  async #createFolders(): Promise<void> {
    this.#paths.createAllFolders();
    await this.#folderSync.sync(this.#paths.root);
    await this.#folderSync.sync(dirname(this.#paths.root));
  }

  /** Resolves when the main file of the instance, if one exists, holds all current commits durably. */
  async #checkpoint(id: string): Promise<void> {
    await this.#replacing.get(id);
    const database = this.#open.get(id) ?? null;
    if (database === null) await this.#syncClosed(id);
    else if (!(await database.syncMainFile())) {
      await database.close();
      await this.#syncClosed(id);
    }
    await this.#newNames.sync(this.#paths.of(id));
  }

  async #syncClosed(id: string): Promise<void> {
    const path = this.#paths.of(id);
    if (!existsSync(path)) return;
    const descriptor = openSync(path, "r");
    await datasync(descriptor);
    // If the database was opened during the sync, closing the descriptor now would drop SQLite's locks.
    const database = this.#open.get(id) ?? null;
    if (database === null) closeSync(descriptor);
    else database.closeLater(descriptor);
  }
}

const datasync = promisify(fdatasync);
