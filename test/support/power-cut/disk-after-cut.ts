/**
 * The data folder as a disk may contain it after a power cut: everything durable according to the journal of the
 * killed process, and a random part of the rest. Unsynced blocks of 512 bytes are kept or lost one by one, and so are
 * new names, removals and renames in folders that were not synced. The rules for SQLite's own syncs are those of
 * `record-syncs.ts`, by their letters.
 */
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type DurableDisk, type FileId, readJournal } from "./sync-journal.ts";
import { generationOf, hasFrames, isControlPlane, WAL_HEADER_BYTES } from "./wal-file.ts";

/** The unit that a disk writes atomically. */
const BLOCK_BYTES = 512;

export interface CutOptions {
  /** Data folder of the killed process, as the page cache has it. */
  readonly folder: string;
  readonly journal: string;
  /** Target folder; must not exist. */
  readonly target: string;
  /** Uniform in [0, 1). */
  readonly random: () => number;
}

/** The result for a file: whether its name survives, and with which content. */
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
  /** The share of the unsynced blocks that this disk has written. */
  readonly #keptShare: number;

  constructor(options: CutOptions) {
    this.#options = options;
    this.#disk = readJournal(options.journal);
    // None and all are two cases that a random share would rarely hit.
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
        if (path === "" && name !== "agents") this.#copy(name);
        else if (synced?.id === id || this.#flip()) this.folder(join(path, name));
      } else if (path === "" && isControlPlane(name)) {
        this.#controlPlane(name);
      } else if (path === "" && isControlPlane(name.slice(0, -"-wal".length))) {
        // Handled with its database.
      } else {
        const found = this.#choose(join(path, name), synced?.id);
        if (found !== null) this.#write(join(path, name), this.#mix(this.#durable(found.id), found.content));
      }
    }
  }

  /**
   * (c): it is unknown what SQLite synced when it closed or started a WAL, so it is assumed to have synced correctly.
   */
  #controlPlane(path: string): void {
    const main = this.#current(path);
    if (main === null) return;
    const wal = this.#current(`${path}-wal`);
    const walOnDisk = wal === null ? undefined : this.#disk.files.get(wal.id);
    const mainOnDisk = this.#durable(main.id);
    if (wal === null) this.#write(path, main.content);
    else if (generationOf(walOnDisk) === generationOf(wal.content)) {
      // (a): a checkpoint that began has synced the whole WAL.
      const hasCheckpointBegun = generationOf(walOnDisk) !== null && !mainOnDisk.equals(main.content);
      this.#write(path, this.#mix(mainOnDisk, main.content));
      this.#write(
        `${path}-wal`,
        hasCheckpointBegun ? wal.content : this.#mix(walOnDisk ?? Buffer.alloc(0), wal.content),
      );
    } else {
      // (a) and (b): the WAL restarted, so the main file has the whole former WAL, and the new header is there if a
      // frame is.
      this.#write(path, main.content);
      const started = hasFrames(wal.content)
        ? Buffer.concat([
            wal.content.subarray(0, WAL_HEADER_BYTES),
            (walOnDisk ?? Buffer.alloc(0)).subarray(WAL_HEADER_BYTES),
          ])
        : wal.content;
      this.#write(`${path}-wal`, this.#mix(started, wal.content));
    }
  }

  #current(path: string): Found | null {
    const file = join(this.#options.folder, path);
    const stats = lstatSync(file, { bigint: true, throwIfNoEntry: false });
    return stats === undefined
      ? null
      : { id: `${stats.ino}-${stats.birthtimeNs}`, content: readFileSync(file) };
  }

  /** Whether the synced or the current file has the name; null for neither. */
  #choose(path: string, syncedId: FileId | undefined): Found | null {
    const current = this.#current(path);
    if (syncedId === current?.id) return current;
    const synced = syncedId === undefined ? null : { id: syncedId, content: this.#durable(syncedId) };
    return this.#flip() ? current : synced;
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

  #copy(path: string): void {
    cpSync(join(this.#options.folder, path), join(this.#options.target, path), { recursive: true });
  }

  #write(path: string, content: Buffer): void {
    writeFileSync(join(this.#options.target, path), content);
  }
}
