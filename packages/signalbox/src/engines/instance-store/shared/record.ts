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
import { constants, crc32, zstdCompressSync, zstdDecompressSync } from "node:zlib";
import { eachPage } from "../journal/wal-reader.ts";
import { KINDS } from "./statements.ts";

export const STORED_HEAD_BYTES = 9;
const RECORD_HEAD_BYTES = 12;
/** Below, compression saves less than it costs. */
export const MIN_COMPRESSED_BYTES = 2048;
export const HASH_BYTES = 20;
/** The unit of a snapshot. */
export const PART_BYTES = 256 * 1024;

const CODECS = { raw: 0, zstd: 1 } as const;

/** Records are small: a large window only makes the compressor clear more memory. */
export const COMPRESSION = {
  params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_windowLog]: 14 },
  chunkSize: 16 * 1024,
};

/** The frames of one or more commits as a raw record. */
export function toRawRecord(frames: Buffer, pageBytes: number): Buffer {
  const pages = new Map<number, Buffer>();
  const databasePages = eachPage(frames, pageBytes, (page, content) => pages.set(page, content));
  return writeRecord(pages, pageBytes, databasePages);
}

function writeRecord(pages: ReadonlyMap<number, Buffer>, pageBytes: number, databasePages: number): Buffer {
  const numbersAt = RECORD_HEAD_BYTES;
  const pagesAt = numbersAt + pages.size * 4;
  const raw = Buffer.allocUnsafe(pagesAt + pages.size * pageBytes);
  raw.writeUInt32BE(pageBytes, 0);
  raw.writeUInt32BE(databasePages, 4);
  raw.writeUInt32BE(pages.size, 8);
  let i = 0;
  for (const [page, content] of pages) {
    raw.writeUInt32BE(page, numbersAt + i * 4);
    content.copy(raw, pagesAt + i * pageBytes);
    i += 1;
  }
  return raw;
}

/** Identifies a record by its content. Two records of one position differ, if PostgreSQL has lost the first of them. */
export function markOf(kind: string, data: Buffer): number {
  if (kind === KINDS.claim) return crc32(data);
  return data.readUInt32BE(kind === KINDS.first ? HASH_BYTES + 1 : 1);
}

/** The first record of a database that has no commit yet. */
export function emptyRecord(pageBytes: number, databasePages: number): Buffer {
  return writeRecord(new Map(), pageBytes, databasePages);
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

/** The stored bytes of a raw value: compressed here if `isCompressed`, on this thread. */
export function toStored(raw: Uint8Array, isCompressed: boolean): Buffer {
  if (isCompressed) {
    const body = zstdCompressSync(raw, COMPRESSION);
    if (body.length < raw.length) return Buffer.concat([storedHead(CODECS.zstd, raw), body]);
  }
  return Buffer.concat([storedHead(CODECS.raw, raw), raw]);
}

/** The stored bytes of a raw value that was compressed elsewhere. */
export function withStoredHead(raw: Uint8Array, compressed: Uint8Array): Buffer {
  return Buffer.concat([storedHead(CODECS.zstd, raw), compressed]);
}

function storedHead(codec: number, raw: Uint8Array): Buffer {
  const head = Buffer.allocUnsafe(STORED_HEAD_BYTES);
  head.writeUInt8(codec, 0);
  head.writeUInt32BE(crc32(raw), 1);
  head.writeUInt32BE(raw.length, 5);
  return head;
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
