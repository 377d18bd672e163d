/**
 * The data folder as a disk may have it after the power went: what the journal of the killed process says is durable, plus whatever part of the
 * rest happened to get there. Blocks of 512 bytes that were written but not synced are kept or lost one by one, at random; so are new names,
 * removals and renames in folders that were not synced. The rules for SQLite's own syncs are those of `record-syncs.ts`, by their letters.
 */
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DurableDisk, type FileId, readJournal } from "./sync-journal.ts";
import { generationOf, hasFrames, WAL_HEADER_BYTES } from "./wal-file.ts";

/** The unit a disk writes whole. */
const BLOCK_BYTES = 512;

export interface CutOptions {
  /** Data folder of the killed process, as it left it in memory. */
  readonly folder: string;
  readonly journal: string;
  /** Where the disk's version goes; must not exist. */
  readonly target: string;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** What a file is at the end: its name survives or not, with which content. */
interface Found {
  readonly id: FileId;
  readonly content: Buffer;
}

export function rebuildDisk(options: CutOptions): void {
  new Rebuild(options).folder("");
}

class Rebuild {
  readonly #options: CutOptions;
  readonly #disk: DurableDisk;
  /** How much of the unsynced blocks this disk had written. */
  readonly #keptShare: number;

  constructor(options: CutOptions) {
    this.#options = options;
    this.#disk = readJournal(options.journal);
    // None and all of them are the two cases that a random share would hardly ever meet.
    const dice = options.random();
    this.#keptShare = dice < 0.3 ? 0 : dice < 0.4 ? 1 : options.random();
  }

  folder(path: string): void {
    mkdirSync(join(this.#options.target, path), { recursive: true });
    const durable = this.#disk.folders.get(path);
    const current = join(this.#options.folder, path);
    const names = new Set([...(durable?.keys() ?? []), ...readdirSync(current)]);
    for (const name of names) {
      const now = lstatSync(join(current, name), { bigint: true, throwIfNoEntry: false });
      const id = now === undefined ? null : `${now.ino}-${now.birthtimeNs}`;
      const synced = durable?.get(name);
      if (now?.isDirectory() === true) {
        if (synced?.id === id || this.#flip()) this.folder(join(path, name));
      } else if (name.endsWith("-wal") && names.has(name.slice(0, -"-wal".length))) {
        // Comes with its database.
      } else if (name.endsWith(".db")) {
        this.#database(join(path, name), synced?.id ?? null, id);
      } else {
        const found = this.#choose(join(path, name), synced?.id ?? null, id);
        if (found !== null) this.#write(join(path, name), this.#mix(this.#durable(found.id), found.content));
      }
    }
  }

  #database(path: string, syncedId: FileId | null, currentId: FileId | null): void {
    const walPath = join(this.#options.folder, `${path}-wal`);
    const walStats = lstatSync(walPath, { bigint: true, throwIfNoEntry: false });
    const wal =
      walStats === undefined
        ? null
        : { id: `${walStats.ino}-${walStats.birthtimeNs}`, content: readFileSync(walPath) };
    // (c): with the first frame of its log, the database's own name is synced too.
    const isNamed = wal !== null && hasFrames(wal.content) && currentId !== null;
    const main = this.#choose(path, isNamed ? currentId : syncedId, currentId);
    if (main === null) return;
    if (main.id !== currentId || wal === null) {
      // (d), or a removed file that is still there: whatever was in the log is in the main file, and that was synced.
      this.#write(path, main.content);
      return;
    }
    const mainOnDisk = this.#durable(main.id);
    const walOnDisk = this.#disk.files.get(wal.id);
    const hasCheckpointBegun = !mainOnDisk.equals(main.content);
    if (generationOf(walOnDisk) === generationOf(wal.content)) {
      // (a): the checkpoint that was begun, if any, found the whole log synced.
      this.#write(path, this.#mix(mainOnDisk, main.content));
      this.#write(
        `${path}-wal`,
        hasCheckpointBegun ? wal.content : this.#mix(walOnDisk ?? Buffer.alloc(0), wal.content),
      );
      return;
    }
    // (a) and (b): the log started over, so the main file has all of the former one, and the new header is there if a frame is.
    this.#write(path, main.content);
    const base = Buffer.from(walOnDisk ?? Buffer.alloc(0));
    const started = hasFrames(wal.content)
      ? Buffer.concat([wal.content.subarray(0, WAL_HEADER_BYTES), base.subarray(WAL_HEADER_BYTES)])
      : wal.content;
    this.#write(`${path}-wal`, this.#mix(started, wal.content));
  }

  /** Which of the synced and the current file has the name; null for none. */
  #choose(path: string, syncedId: FileId | null, currentId: FileId | null): Found | null {
    const current = (): Found | null =>
      currentId === null ? null : { id: currentId, content: readFileSync(join(this.#options.folder, path)) };
    if (syncedId === currentId) return current();
    const synced = syncedId === null ? null : { id: syncedId, content: this.#durable(syncedId) };
    return this.#flip() ? current() : synced;
  }

  #durable(id: FileId): Buffer {
    return this.#disk.files.get(id) ?? Buffer.alloc(0);
  }

  /** Durable content with a random choice of the blocks written since. */
  #mix(durable: Buffer, current: Buffer): Buffer {
    const mixed = Buffer.alloc(Math.max(durable.length, current.length));
    durable.copy(mixed);
    let size = durable.length;
    for (let at = 0; at < current.length; at += BLOCK_BYTES) {
      const end = Math.min(at + BLOCK_BYTES, current.length);
      if (this.#options.random() >= this.#keptShare) continue;
      current.copy(mixed, at, at, end);
      size = Math.max(size, end);
    }
    return mixed.subarray(0, size);
  }

  #flip(): boolean {
    return this.#options.random() < 0.5;
  }

  #write(path: string, content: Buffer): void {
    writeFileSync(join(this.#options.target, path), content);
  }
}

/** A plain copy, as `kill -9` leaves it: the kernel keeps everything that was written. */
export function copyDisk(folder: string, target: string): void {
  cpSync(folder, target, { recursive: true });
}
