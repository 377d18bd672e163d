/**
 * The bytes of records and parts.
 *
 * A record has the pages that one or several commits of SQLite have changed, each once, and the size of the database after them:
 *
 *   raw record    bytes per page (4) · pages of the database (4) · number of pages (4) · page numbers (4 each) · pages
 *   stored bytes  codec (1) · CRC-32 of the raw bytes (4) · length of the raw bytes (4) · raw or compressed bytes
 *
 * The first record of an instance is preceded by the hash of the template that its pages are written over. Integers are big-endian.
 */
import { constants, crc32, zstdDecompressSync } from "node:zlib";
import { eachPage } from "../wal/wal-reader.ts";
import { KINDS } from "./statements.ts";

export const STORED_HEAD_BYTES = 9;
const RECORD_HEAD_BYTES = 12;
const FRAME_HEAD_BYTES = 24;
/** Below, compression saves less than it costs. */
export const MIN_COMPRESSED_BYTES = 2048;
export const HASH_BYTES = 20;
/** The unit of a snapshot. */
export const PART_BYTES = 256 * 1024;

const CODECS = { raw: 0, zstd: 1 } as const;

/**
 * Records are small: a larger window finds nothing more. The target length of the fastest strategy is the distance between samples: for a third less
 * time a record is a quarter longer, and still a tenth of its pages.
 */
export const COMPRESSION = {
  params: {
    [constants.ZSTD_c_compressionLevel]: 1,
    [constants.ZSTD_c_windowLog]: 15,
    [constants.ZSTD_c_targetLength]: 1,
  },
  chunkSize: 16 * 1024,
};

/** The largest raw record of so many bytes of frames. */
export function maxRawBytes(frames: number): number {
  return RECORD_HEAD_BYTES + frames;
}

/** Writes the frames of one or more commits as a raw record; returns its length. Of each page the last version is written. */
export function writeRawRecord(frames: Buffer, pageBytes: number, target: Buffer): number {
  return isOneCommit(frames, pageBytes)
    ? writeCommit(frames, pageBytes, target)
    : writeCommits(frames, pageBytes, target);
}

/** True if only the last frame has the size of the database. SQLite writes a page of a commit once, unless its cache was full. */
function isOneCommit(frames: Buffer, pageBytes: number): boolean {
  const frameBytes = FRAME_HEAD_BYTES + pageBytes;
  let last = 0;
  for (let at = 0; at < frames.length; at += frameBytes) {
    const page = frames.readUInt32BE(at);
    // Pages of a commit are sorted; otherwise one may be there twice.
    if (page <= last) return false;
    last = page;
    if (frames.readUInt32BE(at + 4) !== 0 && at + frameBytes < frames.length) return false;
  }
  return true;
}

function writeCommit(frames: Buffer, pageBytes: number, target: Buffer): number {
  const frameBytes = FRAME_HEAD_BYTES + pageBytes;
  const count = frames.length / frameBytes;
  const pagesAt = RECORD_HEAD_BYTES + count * 4;
  for (let i = 0; i < count; i++) {
    const frame = i * frameBytes;
    frames.copy(target, RECORD_HEAD_BYTES + i * 4, frame, frame + 4);
    frames.copy(target, pagesAt + i * pageBytes, frame + FRAME_HEAD_BYTES, frame + frameBytes);
  }
  const databasePages = frames.readUInt32BE((count - 1) * frameBytes + 4);
  return writeHead(target, { pageBytes, databasePages, count });
}

function writeCommits(frames: Buffer, pageBytes: number, target: Buffer): number {
  const pages = new Map<number, Buffer>();
  const databasePages = eachPage(frames, pageBytes, (page, content) => pages.set(page, content));
  const pagesAt = RECORD_HEAD_BYTES + pages.size * 4;
  let i = 0;
  for (const [page, content] of pages) {
    target.writeUInt32BE(page, RECORD_HEAD_BYTES + i * 4);
    content.copy(target, pagesAt + i * pageBytes);
    i += 1;
  }
  return writeHead(target, { pageBytes, databasePages, count: pages.size });
}

/** The first record of a database that has no commit yet. */
export function writeEmptyRecord(pageBytes: number, databasePages: number, target: Buffer): number {
  return writeHead(target, { pageBytes, databasePages, count: 0 });
}

interface RecordHead {
  readonly pageBytes: number;
  readonly databasePages: number;
  readonly count: number;
}

/** Returns the length of the record. */
function writeHead(target: Buffer, { pageBytes, databasePages, count }: RecordHead): number {
  target.writeUInt32BE(pageBytes, 0);
  target.writeUInt32BE(databasePages, 4);
  target.writeUInt32BE(count, 8);
  return RECORD_HEAD_BYTES + count * (4 + pageBytes);
}

/** Identifies a record by its content. Two records of one position differ, if PostgreSQL has lost the first of them. */
export function markOf(kind: string, data: Buffer): number {
  if (kind === KINDS.claim) return crc32(data);
  return data.readUInt32BE(kind === KINDS.first ? HASH_BYTES + 1 : 1);
}

export interface RecordPages {
  readonly pageBytes: number;
  /** Size of the database after the record. */
  readonly databasePages: number;
  readonly pages: readonly { readonly page: number; readonly content: Buffer }[];
}

/** Throws if the record is damaged. */
export function readRecord(raw: Buffer): RecordPages {
  if (raw.length < RECORD_HEAD_BYTES) throw new Error("a record is shorter than its head");
  const pageBytes = raw.readUInt32BE(0);
  const databasePages = raw.readUInt32BE(4);
  const count = raw.readUInt32BE(8);
  const pagesAt = RECORD_HEAD_BYTES + count * 4;
  if (raw.length !== pagesAt + count * pageBytes) throw new Error("a record has the wrong length");
  const pages = Array.from({ length: count }, (_, i) => ({
    page: raw.readUInt32BE(RECORD_HEAD_BYTES + i * 4),
    content: raw.subarray(pagesAt + i * pageBytes, pagesAt + (i + 1) * pageBytes),
  }));
  return { pageBytes, databasePages, pages };
}

/** The page numbers of a raw record. */
export function pagesOf(raw: Buffer): number[] {
  const count = raw.readUInt32BE(8);
  return Array.from({ length: count }, (_, i) => raw.readUInt32BE(RECORD_HEAD_BYTES + i * 4));
}

export function databasePagesOf(raw: Buffer): number {
  return raw.readUInt32BE(4);
}

/**
 * The parts that a record changes: those of its pages, and those that the database grows by. SQLite does not write every page by which a database
 * grows.
 */
export function eachPart(
  pages: readonly number[],
  size: { readonly from: number; readonly to: number },
  pageBytes: number,
  visit: (part: number) => void,
): void {
  for (const page of pages) visit(Math.floor(((page - 1) * pageBytes) / PART_BYTES));
  if (size.to <= size.from) return;
  const last = Math.floor((size.to * pageBytes - 1) / PART_BYTES);
  for (let part = Math.floor((size.from * pageBytes) / PART_BYTES); part <= last; part++) visit(part);
}

/** Writes the stored bytes of a raw record; returns their length. A large record is compressed, if there is a `compress`. */
export function writeStored(
  raw: Buffer,
  target: Buffer,
  at: number,
  compress: ((raw: Buffer) => Buffer) | null,
): number {
  if (compress !== null && raw.length >= MIN_COMPRESSED_BYTES) {
    const body = compress(raw);
    if (body.length < raw.length) return writeBody(target, at, { codec: CODECS.zstd, raw, body });
  }
  return writeBody(target, at, { codec: CODECS.raw, raw, body: raw });
}

/** The stored bytes of a raw value; of its compressed form, unless that is longer. */
export function toStored(raw: Buffer, compressed: Buffer): Buffer {
  const isShorter = compressed.length < raw.length;
  const body = isShorter ? compressed : raw;
  const stored = Buffer.allocUnsafe(STORED_HEAD_BYTES + body.length);
  writeBody(stored, 0, { codec: isShorter ? CODECS.zstd : CODECS.raw, raw, body });
  return stored;
}

interface StoredValue {
  readonly codec: number;
  readonly raw: Buffer;
  readonly body: Buffer;
}

function writeBody(target: Buffer, at: number, { codec, raw, body }: StoredValue): number {
  target.writeUInt8(codec, at);
  target.writeUInt32BE(crc32(raw), at + 1);
  target.writeUInt32BE(raw.length, at + 5);
  body.copy(target, at + STORED_HEAD_BYTES);
  return STORED_HEAD_BYTES + body.length;
}

/** Throws if the bytes are damaged. */
export function readStored(stored: Buffer): Buffer {
  if (stored.length < STORED_HEAD_BYTES) throw new Error("stored bytes are shorter than their head");
  const codec = stored.readUInt8(0);
  const body = stored.subarray(STORED_HEAD_BYTES);
  const length = stored.readUInt32BE(5);
  if (codec !== CODECS.raw && codec !== CODECS.zstd)
    throw new Error(`stored bytes have the unknown codec ${codec}`);
  const raw =
    codec === CODECS.raw ? body : zstdDecompressSync(body, { maxOutputLength: Math.max(1, length) });
  if (raw.length !== length || crc32(raw) !== stored.readUInt32BE(1))
    throw new Error("stored bytes do not have their checksum");
  return raw;
}
