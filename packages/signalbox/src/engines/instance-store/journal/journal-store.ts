/**
 * Instances' databases as files of the data folder: `agents/<2 digits>/<hash>.db`, named by a hash of account, agent and name, so that no name
 * a client can think of is ever part of a path, and names that differ only in case stay apart on every file system. `agents/journal` makes
 * what they commit durable.
 *
 * Invariants:
 * 1. A database file is created only when the journal has it down: a file that a power cut left incomplete is in the journal, whole.
 * 2. `destroy` is called on closed instances, whose log SQLite has folded in, and is in the journal before the file goes.
 */
import { hash } from "node:crypto";
import { closeSync, existsSync, fdatasync, mkdirSync, openSync, rmSync } from "node:fs";
import { dirname, join, normalize, sep } from "node:path";
import { promisify } from "node:util";
import { DEFAULT_ACCOUNT } from "../../../core/default-account.ts";
import type {
  InstanceDatabase,
  InstanceRef,
  InstanceStore,
  QueryLimits,
  QueryResult,
} from "../instance-store.ts";
import { CacheBudget } from "./cache-budget.ts";
import { DiskRoom } from "../disk-room.ts";
import { FolderSync } from "../folder-sync.ts";
import { type InstancePlace, SqliteInstanceDatabase } from "./journal-database.ts";
import { instanceTemplate } from "./template.ts";
import { Journal } from "./journal.ts";
import { ID_BYTES, type Template } from "./record.ts";
import { LogFiles } from "./spare-wal.ts";
import { NewNames } from "./unsynced-names.ts";
import { queryInProcess } from "../read-only-query.ts";
import { SleepingDatabase } from "../immutable-database.ts";

/** Two hexadecimal digits: 256 folders, 400 files each at 100,000 instances. */
const FOLDERS = 256;
const FAN_OUT_DIGITS = 2;

export interface InstanceFilesOptions {
  /** Must end the process: after a failed sync no commit can be trusted. */
  readonly onFailure: (error: Error) => void;
  /** The disk is full: instances wait with what they have to say. */
  readonly onStall: (error: Error) => void;
  /** Size at which the journal begins another file. */
  readonly segmentBytes: number;
}

export class InstanceFiles implements InstanceStore {
  readonly #root: string;
  readonly #folderSync: FolderSync;
  readonly #journal: Journal;
  readonly #logs: LogFiles;
  readonly #caches = new CacheBudget();
  readonly #room: DiskRoom;
  /** Null while it is being opened. */
  readonly #open = new Map<string, SqliteInstanceDatabase | null>();
  readonly #newNames: NewNames;
  #foldersMade: Promise<void> | undefined;

  /** Brings every instance up to what the journal says first. */
  constructor(root: string, { onFailure, onStall, segmentBytes }: InstanceFilesOptions) {
    this.#root = normalize(root);
    this.#folderSync = new FolderSync(onFailure);
    this.#room = new DiskRoom(this.#root, onStall);
    this.#newNames = new NewNames(this.#folderSync);
    const { journal, replayed } = Journal.open({
      folder: join(root, "journal"),
      folderSync: this.#folderSync,
      template: instanceTemplate(),
      pathOf: (id) => this.#pathOf(id),
      settle: (id) => this.#settle(id),
      onFailure,
      onStall: (error) => this.#room.journalStalled(error),
      onRoom: () => this.#room.journalWrites(),
      segmentBytes,
    });
    this.#journal = journal;
    this.#logs = new LogFiles(root);
    for (const id of replayed) this.#newNames.add(this.#pathOf(id));
  }

  async open(ref: InstanceRef, schema = ""): Promise<InstanceDatabase> {
    const place = this.#placeOf(ref);
    const { id, path } = place;
    if (this.#open.has(id)) throw new Error("the instance's database is open already");
    this.#room.require();
    this.#open.set(id, null);
    try {
      const template = existsSync(path) ? null : instanceTemplate(schema);
      if (template !== null) {
        await this.#announce(place, template);
        this.#newNames.add(path);
      }
      const parts = {
        journal: this.#journal,
        logs: this.#logs,
        caches: this.#caches,
        room: this.#room,
        onClose: () => this.#open.delete(id),
      };
      const database = SqliteInstanceDatabase.open(place, template?.bytes ?? null, parts);
      this.#open.set(id, database);
      return database;
    } catch (error) {
      this.#open.delete(id);
      throw this.#room.explain(error);
    }
  }

  async openToRead(ref: InstanceRef): Promise<InstanceDatabase> {
    const { id, path } = this.#placeOf(ref);
    if (this.#room.problem === null || this.#open.has(id) || !existsSync(path)) return this.open(ref);
    return new SleepingDatabase(path);
  }

  async destroy(ref: InstanceRef): Promise<void> {
    const { id, key, path } = this.#placeOf(ref);
    if (!existsSync(path)) return;
    await this.#journal.destroyed(id, key);
    rmSync(path, { force: true });
    await this.#folderSync.sync(dirname(path));
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
    await this.#logs.close();
  }

  queryReadOnly(snapshot: Uint8Array, text: string, limits: QueryLimits): Promise<QueryResult> {
    return queryInProcess(snapshot, text, limits);
  }

  /** 160 bits of SHA-256: two names on one file are out of the question. */
  #placeOf(ref: InstanceRef): InstancePlace {
    const key = hash("sha256", identityOf(ref), "buffer").subarray(0, ID_BYTES);
    const id = key.toString("hex");
    return { key, id, path: this.#pathOf(id) };
  }

  #pathOf(id: string): string {
    return `${this.#root}${sep}${id.slice(0, FAN_OUT_DIGITS)}${sep}${id}.db`;
  }

  /** Resolves when the instance's file may be created. */
  async #announce({ id, key }: InstancePlace, template: Template): Promise<void> {
    this.#foldersMade ??= this.#makeFolders();
    await this.#foldersMade;
    await this.#journal.created(id, key, template);
  }

  async #makeFolders(): Promise<void> {
    for (let i = 0; i < FOLDERS; i++) {
      const name = i.toString(16).padStart(FAN_OUT_DIGITS, "0");
      mkdirSync(join(this.#root, name), { recursive: true, mode: 0o700 });
    }
    await this.#folderSync.sync(this.#root);
    await this.#folderSync.sync(dirname(this.#root));
  }

  /** Resolves when the disk has in the instance's own file all that it has committed by now. */
  async #settle(id: string): Promise<void> {
    const database = this.#open.get(id) ?? null;
    if (database === null) await this.#syncClosed(id);
    else if (!(await database.settle())) {
      await database.close();
      await this.#syncClosed(id);
    }
    await this.#newNames.settle(this.#pathOf(id));
  }

  async #syncClosed(id: string): Promise<void> {
    const path = this.#pathOf(id);
    if (!existsSync(path)) return;
    const descriptor = openSync(path, "r");
    await datasync(descriptor);
    // Whoever opened the instance meanwhile must not lose SQLite's locks.
    const database = this.#open.get(id) ?? null;
    if (database === null) closeSync(descriptor);
    else database.adopt(descriptor);
  }
}

const datasync = promisify(fdatasync);

/**
 * What is hashed. Instances of the account `default` keep the file names, and the ids in the journal, that they had before instances belonged to
 * accounts. An agent's name is never empty and holds no NUL, so no text of the one form is one of the other.
 */
function identityOf({ account, agent, name }: InstanceRef): string {
  return account === DEFAULT_ACCOUNT ? `${agent}\0${name}` : `\0${account}\0${agent}\0${name}`;
}
