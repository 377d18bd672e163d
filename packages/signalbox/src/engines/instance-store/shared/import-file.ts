/** Brings the file of an instance that was kept on a local disk into its history, as the first snapshot, and reads it back. */
import { type FileHandle, open, readFile, rm, stat } from "node:fs/promises";
import type { HeldInstance } from "./held-instance.ts";
import { restoreFile } from "./restore.ts";
import { writeSnapshot } from "./snapshots.ts";

/** Where the header of a database holds the size of a page (SQLite file format, section 1.3). */
const PAGE_SIZE_OFFSET = 16;
/** A page size of 65,536 bytes is stored as 1. */
const LARGEST = 65_536;

/** `target` is where the content is restored for the comparison; it is removed. False if the instance has a content already. */
export async function importFile(
  instance: HeldInstance,
  { source, target }: { readonly source: string; readonly target: string },
): Promise<boolean> {
  try {
    const { isNew } = await restoreFile(instance, target, null);
    if (!isNew) return false;
    const pageBytes = await readPageSize(source);
    const { size } = await stat(source);
    if (size === 0 || size % pageBytes !== 0) throw new Error(`${source} is not a whole database`);
    const file = await open(source, "r");
    try {
      await write(instance, file, size / pageBytes, pageBytes);
    } finally {
      await file.close();
    }
    await restoreFile(instance, target, null);
    const [before, after] = await Promise.all([readFile(source), readFile(target)]);
    if (!before.equals(after)) throw new Error(`PostgreSQL returned another content than that of ${source}`);
    return true;
  } finally {
    await rm(target, { force: true });
  }
}

async function write(
  instance: HeldInstance,
  file: FileHandle,
  databasePages: number,
  pageBytes: number,
): Promise<void> {
  const partBytes = await writeSnapshot(instance, {
    seq: instance.head,
    databasePages,
    pageBytes,
    changed: null,
    files: { main: file.fd, wal: file.fd, walEnd: 0 },
  });
  if (partBytes === null) throw instance.fence("taken");
  instance.databasePages = databasePages;
  instance.partBytes = partBytes;
}

async function readPageSize(path: string): Promise<number> {
  const file = await open(path, "r");
  try {
    const { buffer } = await file.read(Buffer.alloc(2), 0, 2, PAGE_SIZE_OFFSET);
    const size = buffer.readUInt16BE(0);
    return size === 1 ? LARGEST : size;
  } finally {
    await file.close();
  }
}
