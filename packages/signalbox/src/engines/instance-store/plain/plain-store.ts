/**
 * The plain engine: each instance has its own SQLite file, its own WAL and its own syncs. No journal, no templates, no reuse of WAL files. It is the
 * reference for the tests of the journal engine and the alternative to it.
 *
 * Invariants:
 * 1. The file `live-wal` exists whenever a WAL may hold commits: from the start until a close that left no WAL. If a start finds the
 *    file, `recover` checkpoints all WAL files first, whichever engine starts.
 * 2. The name of a database is durable before `open` resolves.
 */
import {
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { SqlQuery } from "../../../core/sql.ts";
import { replaceFile, syncFolder } from "../../durable-file/index.ts";
import { SqliteConnection } from "../../sqlite-file/index.ts";
import { DiskRoom } from "../disk-room.ts";
import { FolderSync } from "../folder-sync.ts";
import { ImmutableDatabase } from "../immutable-database.ts";
import { ClosedCopies } from "../closed-copies.ts";
import { FOLDER_NAME, InstancePaths } from "../instance-path.ts";
import type {
  InstanceDatabase,
  InstanceStoreOptions,
  LocalInstanceStore,
  QueryLimits,
  QueryResult,
} from "../instance-store.ts";
import { queryInProcess } from "../read-only-query.ts";
import { prepareReplacement } from "../replacement.ts";
import { ReservedNames } from "../reserved-names.ts";
import { readVersion } from "../schema-version.ts";
import { PlainDatabase, type PlainParts, removeDatabase } from "./plain-database.ts";

const MARKER = "live-wal";
/** Where the header of a database holds `user_version` (SQLite file format, section 1.3). */
const USER_VERSION_OFFSET = 60;

export class PlainStore implements LocalInstanceStore {
  readonly #paths: InstancePaths;
  readonly #folderSync: FolderSync;
  readonly #room: DiskRoom;
  readonly #parts: PlainParts;
  /** By path; null while the database is being opened or destroyed. */
  readonly #open = new Map<string, PlainDatabase | null>();
  readonly #copies = new ClosedCopies(true);
  /** Folders of databases that were opened. */
  readonly #folders = new Set<string>();

  constructor({ folder, baseSchema, reservedNames, onFailure, onStall }: InstanceStoreOptions) {
    this.#folderSync = new FolderSync(onFailure);
    this.#paths = new InstancePaths(folder);
    this.#room = new DiskRoom(this.#paths.root, onStall);
    this.#parts = {
      baseSchema,
      reserved: new ReservedNames(reservedNames),
      room: this.#room,
      onFailure,
      onClose: (path) => void this.#open.delete(path),
    };
    mkdirSync(folder, { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, MARKER), "", { mode: 0o600 });
    for (const path of [folder, dirname(folder)]) syncFolder(path);
  }

  /** Checkpoints the WAL files of a crashed process of this engine, so that only the databases hold commits. */
  static recover({ folder }: Pick<InstanceStoreOptions, "folder">): void {
    if (!existsSync(join(folder, MARKER))) return;
    for (const name of readdirSync(folder).filter((entry) => FOLDER_NAME.test(entry))) {
      const files = new Set(readdirSync(join(folder, name)));
      let isChanged = false;
      for (const file of files) {
        if (!file.endsWith(".db")) continue;
        isChanged = recoverDatabase(join(folder, name, file), files.has(`${file}-wal`)) || isChanged;
      }
      if (isChanged) syncFolder(join(folder, name));
    }
    rmSync(join(folder, MARKER));
    syncFolder(folder);
  }

  async open(name: string, schema = ""): Promise<InstanceDatabase> {
    const { id, path } = this.#paths.find(name);
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    if (this.#open.has(path)) throw new Error("the instance's database is open already");
    this.#room.require();
    this.#open.set(path, null);
    try {
      this.#folders.add(dirname(path));
      if (this.#paths.createFolder(path)) await this.#folderSync.sync(this.#paths.root);
      const database = await PlainDatabase.open(path, schema, this.#parts);
      if (database.isNew) await this.#folderSync.sync(dirname(path));
      this.#open.set(path, database);
      return database;
    } catch (error) {
      this.#open.delete(path);
      throw this.#room.explain(error);
    }
  }

  async openToRead(name: string): Promise<InstanceDatabase> {
    const { path } = this.#paths.find(name);
    const isClosed = existsSync(path) && !this.#open.has(path) && !existsSync(`${path}-wal`);
    return this.#room.problem !== null && isClosed ? new ImmutableDatabase(path) : this.open(name);
  }

  async destroy(name: string): Promise<void> {
    const { path } = this.#paths.find(name);
    if (this.#open.has(path)) throw new Error("the instance's database is open");
    if (!existsSync(path)) return;
    // Nothing opens it meanwhile.
    this.#open.set(path, null);
    try {
      removeDatabase(path);
      await this.#folderSync.sync(dirname(path));
    } finally {
      this.#open.delete(path);
    }
  }

  async replace(name: string, content: Uint8Array, statements: readonly SqlQuery[] = []): Promise<void> {
    const { id, path } = this.#paths.find(name);
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    if (this.#open.has(path)) throw new Error("the instance's database is open");
    if (!existsSync(path)) throw new Error("the instance has no database");
    this.#room.require();
    // Nothing opens it meanwhile.
    this.#open.set(path, null);
    try {
      const { bytes } = prepareReplacement(content, statements);
      // On a full disk a closed database may have left its WAL, which is older than the new content.
      if (existsSync(`${path}-wal`)) recoverDatabase(path, true);
      replaceFile(path, bytes);
    } catch (error) {
      throw this.#room.explain(error);
    } finally {
      this.#open.delete(path);
    }
  }

  listIds(): Iterable<string> {
    return this.#paths.list();
  }

  async copy(id: string, path: string): Promise<boolean> {
    const source = this.#paths.of(id);
    for (;;) {
      while (this.#copies.isCopying(id)) await this.#copies.ended(id);
      const database = this.#open.get(source);
      if (database === undefined) return this.#copies.copy(id, source, path);
      if (database !== null && (await database.copyTo(path))) return true;
      // It is being opened, or closed.
      await (database?.close() ?? sleep(1));
    }
  }

  async readClosed(id: string, maxBytes: number): Promise<Uint8Array | null> {
    const source = this.#paths.of(id);
    while (this.#copies.isCopying(id)) await this.#copies.ended(id);
    return this.#open.has(source) ? null : this.#copies.read(id, source, maxBytes);
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
    await this.#room.close();
    const folders = [...this.#folders];
    // A WAL that SQLite has removed must not return after a power failure.
    await Promise.all(folders.map((folder) => this.#folderSync.sync(folder)));
    if (!folders.some(hasWal)) rmSync(join(this.#paths.root, MARKER), { force: true });
  }
}

function hasWal(folder: string): boolean {
  return readdirSync(folder).some((name) => name.endsWith("-wal"));
}

/** Returns whether files were removed. */
function recoverDatabase(path: string, hasOwnWal: boolean): boolean {
  if (!hasOwnWal) {
    if (readVersionOfFile(path) > 0) return false;
    removeDatabase(path);
    return true;
  }
  const connection = SqliteConnection.open(path, { busyTimeoutMs: 0 });
  let version: number;
  try {
    connection.exec("PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL");
    version = readVersion(connection);
    // SQLite does not report a checkpoint that fails during close.
    connection.exec("PRAGMA wal_checkpoint(TRUNCATE)");
  } finally {
    connection.close();
  }
  if (version === 0) removeDatabase(path);
  return true;
}

/** Without SQLite, because there may be a hundred thousand files. A file without a header has version 0. */
function readVersionOfFile(path: string): number {
  const bytes = Buffer.alloc(4);
  const file = openSync(path, "r");
  try {
    readSync(file, bytes, 0, bytes.length, USER_VERSION_OFFSET);
  } finally {
    closeSync(file);
  }
  return bytes.readUInt32BE(0);
}
