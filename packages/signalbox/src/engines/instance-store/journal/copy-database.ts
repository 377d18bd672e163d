/**
 * Copies an open database in WAL mode from its files, beside SQLite: the main file, over which the frames of the WAL are written up to the end of a
 * commit. The caller takes care that no checkpoint runs meanwhile, so the instance goes on while a large database is copied.
 *
 * Rejected: SQLite's `serialize`, which blocks the event loop and needs the size of the database in memory.
 */
import { read } from "node:fs";
import { type FileHandle, open, rm } from "node:fs/promises";
import { promisify } from "node:util";
import { writeWhole } from "../../durable-file/index.ts";
import { eachPage, WAL_HEADER_BYTES } from "../wal/wal-reader.ts";

export interface OpenDatabaseFiles {
  /** Descriptors. */
  readonly main: number;
  readonly wal: number;
  /** The end of the last commit in the WAL; 0 if it has none. */
  readonly walEnd: number;
  /** Bytes of a page; used with a WAL only. */
  readonly pageBytes: number;
}

/** Bytes that are in memory at once. */
const CHUNK_BYTES = 256 * 1024;
const FRAME_HEADER_BYTES = 24;
const readAt = promisify(read);

export async function copyDatabase(files: OpenDatabaseFiles, path: string): Promise<void> {
  const target = await open(path, "wx", 0o600);
  try {
    await copyMain(files.main, target);
    if (files.walEnd > WAL_HEADER_BYTES) await writeFrames(files, target);
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await target.close();
  }
}

async function copyMain(main: number, target: FileHandle): Promise<void> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ;) {
    const { bytesRead } = await readAt(main, buffer, 0, buffer.length, at);
    if (bytesRead === 0) return;
    // A disk that becomes full can take a part.
    for (let written = 0; written < bytesRead;)
      written += (await target.write(buffer, written, bytesRead - written, at + written)).bytesWritten;
    at += bytesRead;
  }
}

async function writeFrames({ wal, walEnd, pageBytes }: OpenDatabaseFiles, target: FileHandle): Promise<void> {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const buffer = Buffer.allocUnsafe(Math.max(1, Math.floor(CHUNK_BYTES / frameBytes)) * frameBytes);
  let databasePages = 0;
  for (let at = WAL_HEADER_BYTES; at < walEnd;) {
    const wanted = Math.min(buffer.length, walEnd - at);
    let length = 0;
    while (length < wanted) {
      const { bytesRead } = await readAt(wal, buffer, length, wanted - length, at + length);
      if (bytesRead === 0) throw new Error("the WAL of an open database is shorter than its commits");
      length += bytesRead;
    }
    // Synchronous: pages are small, and each call is faster than a trip to the thread pool.
    const write = (page: number, content: Buffer) => writeWhole(target.fd, content, (page - 1) * pageBytes);
    databasePages = eachPage(buffer.subarray(0, length), pageBytes, write) || databasePages;
    at += length;
  }
  await target.truncate(databasePages * pageBytes);
}
