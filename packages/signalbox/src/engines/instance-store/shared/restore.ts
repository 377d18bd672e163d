/**
 * Writes the file of an instance from its history: the parts of the snapshot, or a file of the cache, and the records after it.
 *
 * Everything is checked: each part and record has a checksum, positions follow each other without a gap up to the claim, the parts are not newer
 * than the snapshot and are complete, and the snapshot is read again afterwards. If another node has claimed the instance meanwhile, the file is
 * not used. A gap is never skipped: the restore fails.
 */
import { type FileHandle, open } from "node:fs/promises";
import { promisify } from "node:util";
import { zstdCompress } from "node:zlib";
import { writeWhole } from "../../durable-file/index.ts";
import type { HeldInstance } from "./held-instance.ts";
import {
  COMPRESSION,
  eachPart,
  HASH_BYTES,
  markOf,
  PART_BYTES,
  readRecord,
  readStored,
  toStored,
} from "./record.ts";
import { KINDS } from "./statements.ts";

/** Parts and records that are in memory at once. */
const PARTS_AT_ONCE = 16;
const RECORDS_AT_ONCE = { count: 256, bytes: 4 * 1024 * 1024 };
const compress = promisify(zstdCompress);

export interface Restored {
  /** True if the history has no commit: the database is new. */
  readonly isNew: boolean;
  /** True if the existing file was used. */
  readonly usesFile: boolean;
}

/** A file that has all records up to a position. */
export interface BaseFile {
  readonly seq: number;
  /** Identifies the record at the position. */
  readonly mark: number;
}

/** Updates what is known of the instance. */
export async function restoreFile(
  instance: HeldInstance,
  path: string,
  existing: BaseFile | null,
): Promise<Restored> {
  const file = await open(path, existing === null ? "w" : "r+", 0o600);
  try {
    return await restoreInto(file, instance, existing);
  } finally {
    await file.close();
  }
}

async function restoreInto(
  file: FileHandle,
  instance: HeldInstance,
  existing: BaseFile | null,
): Promise<Restored> {
  const { history } = instance;
  const snapshot = await history.readSnapshot(instance);
  if (snapshot === null) throw instance.fence("taken");
  instance.snapSeq = snapshot.snapSeq;
  const usesFile = existing !== null && (await isInHistory(instance, existing));
  if (!usesFile) {
    await file.truncate(0);
    await writeParts(file, instance, snapshot);
  }
  const base = usesFile ? existing.seq : snapshot.snapSeq;
  const records = await applyRecords(file, instance, { seq: base, pages: usesFile ? 0 : snapshot.pages });
  // Another owner may have deleted what was read.
  const again = await history.readSnapshot(instance);
  if (again === null) throw instance.fence("taken");
  const databasePages = records.databasePages ?? (usesFile ? null : snapshot.pages);
  if (databasePages !== null) instance.databasePages = databasePages;
  // Of records that are in the file already, the changed parts are unknown.
  instance.dirtyParts = usesFile || snapshot.snapSeq === 0 ? null : records.dirtyParts;
  instance.logBytes = records.bytes;
  // Not those that were read: a file of the cache saves the reading, and not the next node's restore.
  instance.logRecords = instance.head - snapshot.snapSeq;
  return { usesFile, isNew: !usesFile && snapshot.snapSeq === 0 && records.databasePages === null };
}

/** False if PostgreSQL has no record, or another one, at the position of the file: the file may have what PostgreSQL has lost. */
async function isInHistory({ history, id, head, snapSeq }: HeldInstance, file: BaseFile): Promise<boolean> {
  if (file.seq < snapSeq || file.seq > head) return false;
  const [record] = await history.readRecords(id, file.seq - 1, file.seq, RECORDS_AT_ONCE);
  return record !== undefined && markOf(record.kind, record.data) === file.mark;
}

async function writeParts(
  file: FileHandle,
  { history, id }: HeldInstance,
  snapshot: { readonly snapSeq: number; readonly pages: number; readonly pageBytes: number },
): Promise<void> {
  const bytes = snapshot.pages * snapshot.pageBytes;
  const count = Math.ceil(bytes / PART_BYTES);
  for (let next = 0; next < count;) {
    const parts = await history.readParts(id, next, PARTS_AT_ONCE);
    if (parts.length === 0) throw damaged(id, `part ${next} of ${count} is missing`);
    for (const { part, seq, data } of parts) {
      if (part !== next || seq > snapshot.snapSeq) throw damaged(id, `part ${next} is missing or newer`);
      const raw = readStored(data);
      // The last part may be longer than the database, which has become smaller.
      const isLast = part === count - 1;
      if (isLast ? raw.length < bytes - part * PART_BYTES : raw.length !== PART_BYTES)
        throw damaged(id, `part ${part} has ${raw.length} bytes`);
      await file.write(raw, 0, raw.length, part * PART_BYTES);
      next += 1;
    }
  }
  await file.truncate(bytes);
}

interface AppliedRecords {
  /** Null if no record has pages. */
  readonly databasePages: number | null;
  readonly dirtyParts: Set<number>;
  readonly bytes: number;
}

async function applyRecords(
  file: FileHandle,
  { history, id, head }: HeldInstance,
  base: { readonly seq: number; readonly pages: number },
): Promise<AppliedRecords> {
  const dirtyParts = new Set<number>();
  let databasePages: number | null = null;
  let lastPages = base.pages;
  let bytes = 0;
  for (let last = base.seq; last < head;) {
    const rows = await history.readRecords(id, last, head, RECORDS_AT_ONCE);
    if (rows.length === 0) throw damaged(id, `record ${last + 1} is missing`);
    /** The last version of each page of these records. */
    const pages = new Map<number, Buffer>();
    let pageBytes = 0;
    for (const { seq, kind, data } of rows) {
      if (seq !== last + 1) throw damaged(id, `record ${last + 1} is missing`);
      last = seq;
      bytes += data.length;
      if (kind === KINDS.claim) continue;
      if (kind === KINDS.first) {
        const template = await history.readTemplate(data.subarray(0, HASH_BYTES));
        await file.write(template, 0, template.length, 0);
        pages.clear();
      } else if (kind !== KINDS.pages) throw damaged(id, `record ${seq} has the unknown kind ${kind}`);
      const record = readRecord(readStored(kind === KINDS.first ? data.subarray(HASH_BYTES) : data));
      ({ pageBytes, databasePages } = record);
      for (const { page, content } of record.pages) pages.set(page, content);
      const numbers = record.pages.map(({ page }) => page);
      eachPart(numbers, { from: lastPages, to: databasePages }, pageBytes, (part) => dirtyParts.add(part));
      lastPages = databasePages;
    }
    // Synchronous: pages are small, and each call is faster than a trip to the thread pool.
    for (const [page, content] of pages)
      if (page <= (databasePages ?? 0)) writeWhole(file.fd, content, (page - 1) * pageBytes);
    if (databasePages !== null && pageBytes > 0) await file.truncate(databasePages * pageBytes);
  }
  return { databasePages, dirtyParts, bytes };
}

/** The stored bytes of a part, compressed in the thread pool. */
export async function toPart(raw: Buffer): Promise<Buffer> {
  return toStored(raw, await compress(raw, COMPRESSION));
}

function damaged(id: number, what: string): Error {
  return new Error(`the history of instance ${id} in PostgreSQL is incomplete or damaged: ${what}`);
}
