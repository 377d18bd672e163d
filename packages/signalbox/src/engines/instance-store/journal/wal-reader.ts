/**
 * The part of SQLite's write-ahead log that the journal lives on (SQLite file format, section 4): a header of 32 bytes with the page size and
 * two salts, then frames of 24 bytes and a page. A frame belongs to the log's current run if it carries the header's salts, and ends a
 * transaction if the size of the database stands in it.
 */
import { readSync } from "node:fs";

export const WAL_HEADER_BYTES = 32;
const HEADER_PAGE_SIZE = 8;
const HEADER_SALTS = 16;
const FRAME_HEAD_BYTES = 24;
const FRAME_DATABASE_PAGES = 4;
const FRAME_SALTS = 8;

/** Read at first: as much as most transactions have, and not much more, since older frames may follow. */
const FIRST_READ_BYTES = 24 * 1024;
/** A larger buffer is not kept. */
const MAX_SCRATCH_BYTES = 1024 * 1024;
/** Frames are read through one buffer, for one instance at a time. */
let scratch = Buffer.allocUnsafeSlow(FIRST_READ_BYTES);

const NOTHING = Buffer.alloc(0);

/** Follows the log of one open database and hands out each committed frame once. */
export class WalTail {
  readonly #fd: number;
  /** Where the next unread frame starts; 0 until the header was read. */
  #position = 0;
  #extent = 0;
  #salts: readonly [number, number] = [0, 0];
  #pageBytes = 0;

  /** `fd` is the log's; it stays the caller's. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  get pageBytes(): number {
    return this.#pageBytes;
  }

  /** Bytes of the log that were handed out. */
  get length(): number {
    return this.#position;
  }

  /** The most that `length` ever was. */
  get extent(): number {
    return Math.max(this.#extent, this.#position);
  }

  /**
   * The frames of all transactions committed since the last call; empty if there are none. The bytes are good until any tail is read again.
   * Must not be called inside a transaction.
   */
  read(): Buffer {
    if (this.#position === 0 && !this.#readHeader()) return NOTHING;
    const frameBytes = FRAME_HEAD_BYTES + this.#pageBytes;
    let buffer = scratch;
    let length = 0;
    for (let wanted = FIRST_READ_BYTES; ; wanted = length) {
      if (length + wanted > buffer.length) buffer = enlarge(buffer, length);
      const read = readSync(this.#fd, buffer, length, wanted, this.#position + length);
      length += read;
      const { committed, own } = this.#measure(buffer, length);
      if (read < wanted || own + frameBytes <= length) {
        this.#position += committed;
        return buffer.subarray(0, committed);
      }
    }
  }

  /** The whole log was copied into the database: the next transaction starts it over, with new salts. */
  startOver(): void {
    this.#extent = this.extent;
    this.#position = 0;
  }

  /** How many bytes are whole transactions, and how many are frames of the log's current run. */
  #measure(bytes: Buffer, length: number): { committed: number; own: number } {
    const frameBytes = FRAME_HEAD_BYTES + this.#pageBytes;
    let committed = 0;
    let at = 0;
    for (; at + frameBytes <= length; at += frameBytes) {
      if (bytes.readUInt32BE(at + FRAME_SALTS) !== this.#salts[0]) break;
      if (bytes.readUInt32BE(at + FRAME_SALTS + 4) !== this.#salts[1]) break;
      if (bytes.readUInt32BE(at + FRAME_DATABASE_PAGES) !== 0) committed = at + frameBytes;
    }
    return { committed, own: at };
  }

  /** False if no transaction has started the log (over) yet. */
  #readHeader(): boolean {
    if (readSync(this.#fd, scratch, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES) return false;
    const first = scratch.readUInt32BE(HEADER_SALTS);
    const second = scratch.readUInt32BE(HEADER_SALTS + 4);
    this.#pageBytes = scratch.readUInt32BE(HEADER_PAGE_SIZE);
    // Without a header there is no page size.
    if (this.#pageBytes === 0 || (first === this.#salts[0] && second === this.#salts[1])) return false;
    this.#salts = [first, second];
    this.#position = WAL_HEADER_BYTES;
    return true;
  }
}

/** A buffer of twice the size that begins as `bytes` does. */
function enlarge(bytes: Buffer, length: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(bytes.length * 2);
  bytes.copy(larger, 0, 0, length);
  if (larger.length <= MAX_SCRATCH_BYTES) scratch = larger;
  return larger;
}

/** Calls `visit` for each frame's page; returns the number of pages the database has after the last transaction. */
export function eachPage(
  frames: Buffer,
  pageBytes: number,
  visit: (page: number, content: Buffer) => void,
): number {
  const frameBytes = FRAME_HEAD_BYTES + pageBytes;
  let databasePages = 0;
  for (let at = 0; at + frameBytes <= frames.length; at += frameBytes) {
    visit(frames.readUInt32BE(at), frames.subarray(at + FRAME_HEAD_BYTES, at + frameBytes));
    databasePages = frames.readUInt32BE(at + FRAME_DATABASE_PAGES) || databasePages;
  }
  return databasePages;
}
