/**
 * A data folder that a backup is restored into.
 *
 * Invariants:
 * 1. Former content is never deleted. The content of a folder that is not empty is refused, or moved into a folder of its own if the operator wants
 *    it replaced.
 * 2. From the first write to the last the folder has a marker, and no server starts on it. The marker is durable before the first file, and it is
 *    removed after all files are durable.
 * 3. The marker has a state: `moving` until all former content is moved and the moves are durable, then `writing`. A restore that finds `moving`
 *    completes the moves; one that finds `writing` removes what the interrupted restore has written, and begins again.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmdirSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname, join } from "node:path";
import { replaceFile, syncFolder } from "../../engines/durable-file/index.ts";
import { DataFolderError } from "../../core/data-folder-error.ts";
import { DataFolder, LOCK_FILE, RESTORE_MARKER } from "../../database/sqlite/data-folder.ts";

const FORMER = /^replaced-\d{8}T\d{6}Z(?:-\d+)?$/;
/** In the root of a volume with ext4; only root may move it. */
const LOST_AND_FOUND = "lost+found";
/** The draft of `replaceFile`. */
const NEW_MARKER = `${RESTORE_MARKER}.new`;

interface Marker {
  readonly state: "moving" | "writing";
  /** Name of the folder below the data folder with the former content; null if there was none. */
  readonly replacedTo: string | null;
}

export class RestoreFolder {
  readonly path: string;
  /** Where the former content is; null if there was none. */
  readonly replacedTo: string | null;
  readonly #lock: DataFolder;
  readonly #folders = new Set<string>();

  private constructor(lock: DataFolder, replacedTo: string | null) {
    this.#lock = lock;
    this.path = lock.path;
    this.replacedTo = replacedTo;
  }

  /** Throws `DataFolderError` for a folder that is in use, or not empty unless `mayReplace`. `move` is replaced by tests. */
  static begin(path: string, mayReplace: boolean, move: typeof renameSync = renameSync): RestoreFolder {
    const isNew = !existsSync(path);
    const lock = DataFolder.openForRestore(path);
    try {
      const content = readdirSync(path).filter((name) => !isKept(name));
      let marker = readMarker(path);
      if (marker?.state === "writing")
        for (const name of content) rmSync(join(path, name), { recursive: true });
      else {
        if (marker === null && content.length > 0 && !mayReplace)
          throw new DataFolderError(
            `the data folder ${path} is not empty; give a new folder with --data-dir, or --replace to move its content into a folder below it`,
          );
        marker ??= { state: "moving", replacedTo: content.length === 0 ? null : newName(path) };
        writeMarker(path, marker);
        if (marker.replacedTo !== null) moveAll(path, content, marker.replacedTo, move);
        writeMarker(path, { ...marker, state: "writing" });
      }
      if (isNew) syncFolder(dirname(path));
      return new RestoreFolder(lock, marker.replacedTo === null ? null : join(path, marker.replacedTo));
    } catch (error) {
      lock.close();
      throw error;
    }
  }

  /** Writes a file durably; its name becomes durable with `finish`. */
  async write(name: string, chunks: AsyncIterable<Uint8Array>): Promise<void> {
    const path = join(this.path, name);
    const folder = dirname(path);
    if (!this.#folders.has(folder)) mkdirSync(folder, { recursive: true, mode: 0o700 });
    this.#folders.add(folder);
    const file = await open(path, "wx", 0o600);
    try {
      for await (const chunk of chunks) await file.writeFile(chunk);
      await file.datasync();
    } finally {
      await file.close();
    }
  }

  /** The folder is complete: servers may start on it. */
  finish(): void {
    for (const folder of this.#folders) {
      syncFolder(folder);
      syncFolder(dirname(folder));
    }
    syncFolder(this.path);
    rmSync(this.#lock.file(RESTORE_MARKER));
    syncFolder(this.path);
  }

  close(): void {
    this.#lock.close();
  }
}

/** Files of the lock and the marker, former content, and what belongs to the file system. */
function isKept(name: string): boolean {
  return (
    [LOCK_FILE, RESTORE_MARKER, NEW_MARKER, LOST_AND_FOUND].includes(name) ||
    name.startsWith(`${LOCK_FILE}-`) ||
    FORMER.test(name)
  );
}

/** Null if no restore was interrupted. */
function readMarker(path: string): Marker | null {
  const file = join(path, RESTORE_MARKER);
  if (!existsSync(file)) return null;
  const [, state, replacedTo] = /^state: (moving|writing)(?: (replaced-\S+))?$/m.exec(
    readFileSync(file, "utf8"),
  ) ?? [null, "writing"];
  return { state: state === "moving" ? "moving" : "writing", replacedTo: replacedTo ?? null };
}

/** A reader sees the former marker or the new one, also after a power failure. */
function writeMarker(path: string, { state, replacedTo }: Marker): void {
  const text = `A restore has begun and not ended.\nstate: ${state}${replacedTo === null ? "" : ` ${replacedTo}`}\n`;
  replaceFile(join(path, RESTORE_MARKER), text);
}

function newName(path: string): string {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d+/g, "");
  let name = `replaced-${time}`;
  for (let i = 2; existsSync(join(path, name)); i++) name = `replaced-${time}-${i}`;
  return name;
}

/**
 * Below the folder, because the folder itself may be a mount point. A part of the content may be one, too, and cannot be moved: then all is as before,
 * and the server can still be started.
 */
function moveAll(
  path: string,
  content: readonly string[],
  replacedTo: string,
  move: typeof renameSync,
): void {
  const target = join(path, replacedTo);
  mkdirSync(target, { recursive: true, mode: 0o700 });
  for (const name of content) {
    try {
      move(join(path, name), join(target, name));
    } catch (cause) {
      for (const moved of readdirSync(target)) renameSync(join(target, moved), join(path, moved));
      rmdirSync(target);
      rmSync(join(path, RESTORE_MARKER));
      syncFolder(path);
      throw new DataFolderError(
        `cannot move ${join(path, name)} to ${target}: ${(cause as Error).message}; nothing was changed`,
        { cause },
      );
    }
  }
  syncFolder(target);
  syncFolder(path);
}
