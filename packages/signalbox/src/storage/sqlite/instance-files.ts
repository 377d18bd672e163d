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
import { mkdirSync } from "node:fs";
import { access, open, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { InstanceDatabase, InstanceRef, InstanceStore } from "../ports/instance-store.ts";
import { FolderSync } from "./folder-sync.ts";
import { SqliteInstanceDatabase } from "./instance-database.ts";
import { instanceTemplate } from "./instance-template.ts";

/** Two hexadecimal digits: 256 folders, 400 files each at 100,000 instances. */
const FAN_OUT_DIGITS = 2;
/** 160 bits of SHA-256: two names on one file are out of the question. */
const HASH_DIGITS = 40;

export class InstanceFiles implements InstanceStore {
  readonly #root: string;
  readonly #onFailure: (error: Error) => void;
  readonly #folderSync: FolderSync;
  readonly #knownFolders = new Set<string>();
  #temporaryCounter = 0;

  /** `onFailure` must end the process: after a failed sync no commit can be trusted. */
  constructor(root: string, onFailure: (error: Error) => void) {
    this.#root = root;
    this.#onFailure = onFailure;
    this.#folderSync = new FolderSync(onFailure);
    mkdirSync(root, { recursive: true, mode: 0o700 });
  }

  async open(ref: InstanceRef): Promise<InstanceDatabase> {
    const path = this.#pathOf(ref);
    const isNew = !(await exists(path));
    if (isNew) await this.#create(path);
    return SqliteInstanceDatabase.open(path, isNew, this.#folderSync, this.#onFailure);
  }

  async destroy(ref: InstanceRef): Promise<void> {
    const path = this.#pathOf(ref);
    if (!(await exists(path))) return;
    await rm(path, { force: true });
    await this.#folderSync.sync(dirname(path));
  }

  #pathOf({ agent, name }: InstanceRef): string {
    const hash = createHash("sha256").update(`${agent}\0${name}`).digest("hex").slice(0, HASH_DIGITS);
    return join(this.#root, hash.slice(0, FAN_OUT_DIGITS), `${hash}.db`);
  }

  async #create(path: string): Promise<void> {
    await this.#makeFolder(dirname(path));
    this.#temporaryCounter += 1;
    const temporary = `${path}.${process.pid}-${this.#temporaryCounter}.new`;
    await rm(`${path}-wal`, { force: true });
    const file = await open(temporary, "w", 0o600);
    try {
      await file.write(instanceTemplate());
      await file.datasync();
    } finally {
      await file.close();
    }
    // The rename's own durability comes with the first sync, which covers the folder.
    await rename(temporary, path);
  }

  async #makeFolder(path: string): Promise<void> {
    if (this.#knownFolders.has(path)) return;
    mkdirSync(path, { recursive: true, mode: 0o700 });
    await this.#folderSync.sync(this.#root);
    this.#knownFolders.add(path);
  }
}

async function exists(path: string): Promise<boolean> {
  try {
    await access(path);
    return true;
  } catch {
    return false;
  }
}
