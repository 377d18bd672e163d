/**
 * The local files of closed databases, which are a cache of the history in PostgreSQL. An index in the folder says which file is the database at which
 * position; a file without an entry is worthless.
 *
 * Invariants:
 * 1. An entry is removed before the file is opened, and added after the file was closed completely. So a kill leaves no entry of a file that was
 *    open. The history is linear: a file at an acknowledged position is a beginning of the history, whichever node has written since.
 * 2. Files are not synced. So entries are valid only until the machine is started again; without a mark of the start they end with the process.
 * 3. A line that cannot be written whole, for example on a full disk, makes the index worthless at the next start: the line after it could not be
 *    told from it, and the entry of a file that is open would stay.
 * 4. The files together have at most `maxBytes`; those that were closed first are removed first.
 */
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { basename, extname, join } from "node:path";
import { writeWhole } from "../../durable-file/index.ts";
import { FOLDER_NAME, type InstancePaths } from "../instance-path.ts";
import { SpareWal } from "../wal/spare-wal.ts";

const INDEX = "cache";
const BOOT_ID = "/proc/sys/kernel/random/boot_id";
/** Lines per entry at which the index is written anew. */
const MAX_LINES_PER_ENTRY = 8;
const MIN_LINES = 10_000;

export interface CacheEntry {
  /** Identifies the instance in its store: a destroyed instance of the same name has another one. */
  readonly id: number;
  /** `<number of the store>`: ids are unique in a store. */
  readonly store: string;
  /** The file has all records up to this position. */
  readonly seq: number;
  /** Identifies the record there: PostgreSQL may have lost it, and have another one. */
  readonly mark: number;
  readonly bytes: number;
}

export class CacheFiles {
  readonly #paths: InstancePaths;
  readonly #maxBytes: number;
  readonly #index: string;
  /** By key, the first closed first. */
  readonly #entries = new Map<string, CacheEntry>();
  #bytes = 0;
  #lines = 0;
  #file: number;

  constructor(paths: InstancePaths, maxBytes: number) {
    this.#paths = paths;
    this.#maxBytes = maxBytes;
    this.#index = join(paths.root, INDEX);
    mkdirSync(paths.root, { recursive: true, mode: 0o700 });
    if (!existsSync(this.#index) && readdirSync(paths.root).some((name) => FOLDER_NAME.test(name)))
      throw new Error(`${paths.root} holds databases of another engine, which must not be used as a cache`);
    this.#load();
    this.#file = this.#rewrite();
    this.#trim();
  }

  get bytes(): number {
    return this.#bytes;
  }

  find(key: string): CacheEntry | undefined {
    return this.#entries.get(key);
  }

  /** The file is going to be opened or replaced. */
  open(key: string): void {
    if (this.#remove(key)) this.#write(`${key}\n`);
  }

  /** The file was closed and has all records up to the position. */
  closed(key: string, entry: Omit<CacheEntry, "bytes">): void {
    const { size } = statSync(this.#paths.of(key));
    this.#add(key, { ...entry, bytes: size });
    this.#write(lineOf(key, { ...entry, bytes: size }));
    this.#trim();
  }

  /** Removes the file, which is closed. */
  discard(key: string): void {
    this.open(key);
    rmSync(this.#paths.of(key), { force: true });
  }

  close(): void {
    closeSync(this.#file);
  }

  #add(key: string, entry: CacheEntry): void {
    this.#remove(key);
    this.#entries.set(key, entry);
    this.#bytes += entry.bytes;
  }

  #remove(key: string): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    this.#entries.delete(key);
    this.#bytes -= entry.bytes;
    return true;
  }

  #trim(): void {
    for (const key of this.#entries.keys()) {
      if (this.#bytes <= this.#maxBytes) return;
      this.discard(key);
    }
  }

  #load(): void {
    if (!existsSync(this.#index)) return;
    const [boot = "", ...lines] = readFileSync(this.#index, "utf8").split("\n");
    const isValid = boot !== "" && boot === readBoot();
    const keys = new Set<string>();
    // The last line may be incomplete.
    for (const line of lines.slice(0, -1)) {
      const [key = "", id, store = "", seq, mark, bytes] = line.split(" ");
      keys.add(key);
      this.#remove(key);
      if (isValid && bytes !== undefined)
        this.#add(key, { id: Number(id), store, seq: Number(seq), mark: Number(mark), bytes: Number(bytes) });
    }
    for (const key of keys) if (!this.#entries.has(key)) removeFiles(this.#paths.of(key));
    if (!isValid)
      for (const name of foldersOf(this.#paths.root)) rmSync(name, { recursive: true, force: true });
    // Files that a killed process had created, and not yet closed, have no line.
    else if (SpareWal.isLeftIn(this.#paths.root))
      for (const folder of foldersOf(this.#paths.root))
        for (const file of readdirSync(folder))
          if (!this.#entries.has(basename(file, extname(file)))) rmSync(join(folder, file), { force: true });
  }

  #rewrite(): number {
    const text = [...this.#entries].map(([key, entry]) => lineOf(key, entry)).join("");
    const next = `${this.#index}.next`;
    writeFileSync(next, `${readBoot()}\n${text}`, { mode: 0o600 });
    renameSync(next, this.#index);
    this.#lines = this.#entries.size;
    return openSync(this.#index, "a");
  }

  #write(line: string): void {
    this.#lines += 1;
    try {
      if (this.#lines > MIN_LINES && this.#lines > MAX_LINES_PER_ENTRY * this.#entries.size) {
        const file = this.#rewrite();
        closeSync(this.#file);
        this.#file = file;
        return;
      }
      writeWhole(this.#file, Buffer.from(line));
      return;
    } catch {
      // A part of the line may be written.
    }
    // Without its first line the index is that of another start of the machine. This needs no room.
    ftruncateSync(this.#file, 0);
  }
}

function lineOf(key: string, { id, store, seq, mark, bytes }: CacheEntry): string {
  return `${key} ${id} ${store} ${seq} ${mark} ${bytes}\n`;
}

/** Empty if the system has no mark of its start. */
function readBoot(): string {
  return existsSync(BOOT_ID) ? readFileSync(BOOT_ID, "utf8").trim() : "";
}

function foldersOf(root: string): string[] {
  return readdirSync(root)
    .filter((name) => FOLDER_NAME.test(name))
    .map((name) => join(root, name));
}

function removeFiles(path: string): void {
  for (const suffix of ["", "-wal"]) rmSync(path + suffix, { force: true });
}
