/**
 * Instances' databases as files of the data folder: `agents/<2 digits>/<hash>.db`, named by a hash of agent and name, so that no name
 * a client can think of is ever part of a path, and names that differ only in case stay apart on every file system.
 *
 * Invariants:
 * 1. A database file appears under its name only when it is complete and synced (written aside, then renamed): a crash leaves either
 *    a whole instance or none.
 * 2. Before an instance is created, a log left over under its name is removed: SQLite would replay it into the new file.
 * 3. `destroy` is called on closed instances, whose log SQLite has folded in: removing the one file removes everything at once.
 */
import { createHash } from "node:crypto";
import {
  closeSync,
  existsSync,
  fdatasync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  writeSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type {
  InstanceDatabase,
  InstanceRef,
  InstanceStore,
  QueryLimits,
  QueryResult,
} from "../ports/instance-store.ts";
import { FolderSync } from "./folder-sync.ts";
import { SqliteInstanceDatabase } from "./instance-database.ts";
import { instanceTemplate } from "./instance-template.ts";
import { queryInProcess } from "./read-only-query.ts";

/** Two hexadecimal digits: 256 folders, 400 files each at 100,000 instances. */
const FOLDERS = 256;
const FAN_OUT_DIGITS = 2;
/** 160 bits of SHA-256: two names on one file are out of the question. */
const HASH_DIGITS = 40;

export class InstanceFiles implements InstanceStore {
  readonly #root: string;
  readonly #onFailure: (error: Error) => void;
  readonly #folderSync: FolderSync;
  #foldersMade: Promise<void> | undefined;
  #temporaryCounter = 0;

  /** `onFailure` must end the process: after a failed sync no commit can be trusted. */
  constructor(root: string, onFailure: (error: Error) => void) {
    this.#root = root;
    this.#onFailure = onFailure;
    this.#folderSync = new FolderSync(onFailure);
  }

  async open(ref: InstanceRef): Promise<InstanceDatabase> {
    const path = this.#pathOf(ref);
    const isNew = !existsSync(path);
    if (isNew) await this.#create(path);
    return SqliteInstanceDatabase.open(path, isNew, this.#folderSync, this.#onFailure);
  }

  async destroy(ref: InstanceRef): Promise<void> {
    const path = this.#pathOf(ref);
    if (!existsSync(path)) return;
    rmSync(path, { force: true });
    await this.#folderSync.sync(dirname(path));
  }

  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult> {
    return queryInProcess(snapshot, text, limits);
  }

  #pathOf({ agent, name }: InstanceRef): string {
    const hash = createHash("sha256").update(`${agent}\0${name}`).digest("hex").slice(0, HASH_DIGITS);
    return join(this.#root, hash.slice(0, FAN_OUT_DIGITS), `${hash}.db`);
  }

  /** Small calls on names are made directly: each is quicker than a trip to the thread pool. Only the sync can take long. */
  async #create(path: string): Promise<void> {
    this.#foldersMade ??= this.#makeFolders();
    await this.#foldersMade;
    this.#temporaryCounter += 1;
    const temporary = `${path}.${process.pid}-${this.#temporaryCounter}.new`;
    rmSync(`${path}-wal`, { force: true });
    const file = openSync(temporary, "w", 0o600);
    try {
      writeSync(file, instanceTemplate());
      await datasync(file);
    } catch (error) {
      rmSync(temporary, { force: true });
      throw error;
    } finally {
      closeSync(file);
    }
    // The rename's own durability comes with the first sync, which covers the folder.
    renameSync(temporary, path);
  }

  async #makeFolders(): Promise<void> {
    for (let i = 0; i < FOLDERS; i++) {
      const name = i.toString(16).padStart(FAN_OUT_DIGITS, "0");
      mkdirSync(join(this.#root, name), { recursive: true, mode: 0o700 });
    }
    await this.#folderSync.sync(this.#root);
    await this.#folderSync.sync(dirname(this.#root));
  }
}

const datasync = promisify(fdatasync);
