/**
 * Reads frames from SQLite's WAL (SQLite file format, section 4): a header of 32 bytes with the page size and two salts, then frames, each a
 * header of 24 bytes and a page. A frame is valid if it has the salts of the header. The last frame of a transaction holds the size of the
 * database; in all other frames that field is 0.
 */
import { readSync } from "node:fs";

export const WAL_HEADER_BYTES = 32;
const HEADER_PAGE_SIZE = 8;
const HEADER_SALTS = 16;
const FRAME_HEADER_BYTES = 24;
const FRAME_DATABASE_PAGES = 4;
const FRAME_SALTS = 8;

/** Size of the first read: most transactions fit. Invalid frames may follow, so a larger read would be wasted. */
const FIRST_READ_BYTES = 24 * 1024;
/** A larger buffer is not kept. */
const MAX_SCRATCH_BYTES = 1024 * 1024;
/** All readers share one buffer. */
let scratch = Buffer.allocUnsafeSlow(FIRST_READ_BYTES);

const NOTHING = Buffer.alloc(0);

/** Follows the WAL of one open database and returns each committed frame once. */
export class WalReader {
  readonly #fd: number;
  /** Where the next unread frame starts; 0 until the header was read. */
  #position = 0;
  #extent = 0;
  #salts: readonly [number, number] = [0, 0];
  #pageBytes = 0;

  /** The caller closes `fd`. */
  constructor(fd: number) {
    this.#fd = fd;
  }

  get pageBytes(): number {
    return this.#pageBytes;
  }

  /** Bytes of the WAL that were read. */
  get length(): number {
    return this.#position;
  }

  /** The maximum of `length` so far. */
  get extent(): number {
    return Math.max(this.#extent, this.#position);
  }

  /**
   * The frames of all transactions committed since the last call; empty if there are none. The bytes are valid until the next `read` of any reader.
   * Frames that an open transaction has written are not returned before its commit.
   */
  read(): Buffer {
    if (this.#position === 0 && !this.#readHeader()) return NOTHING;
    const frameBytes = FRAME_HEADER_BYTES + this.#pageBytes;
    let buffer = scratch;
    let length = 0;
    for (let wanted = FIRST_READ_BYTES; ; wanted = length) {
      if (length + wanted > buffer.length) buffer = enlarge(buffer, length);
      const read = readSync(this.#fd, buffer, length, wanted, this.#position + length);
      length += read;
      const { committed, valid } = this.#measure(buffer, length);
      if (read < wanted || valid + frameBytes <= length) {
        this.#position += committed;
        return buffer.subarray(0, committed);
      }
    }
  }

  /** Call after a complete checkpoint: the next transaction starts the WAL over, with new salts. */
  restart(): void {
    this.#extent = this.extent;
    this.#position = 0;
  }

  /** How many bytes are whole transactions, and how many are valid frames. */
  #measure(bytes: Buffer, length: number): { committed: number; valid: number } {
    const frameBytes = FRAME_HEADER_BYTES + this.#pageBytes;
    let committed = 0;
    let at = 0;
    for (; at + frameBytes <= length; at += frameBytes) {
      if (bytes.readUInt32BE(at + FRAME_SALTS) !== this.#salts[0]) break;
      if (bytes.readUInt32BE(at + FRAME_SALTS + 4) !== this.#salts[1]) break;
      if (bytes.readUInt32BE(at + FRAME_DATABASE_PAGES) !== 0) committed = at + frameBytes;
    }
    return { committed, valid: at };
  }

  /** False if no transaction has started the WAL since `restart`. */
  #readHeader(): boolean {
    if (readSync(this.#fd, scratch, 0, WAL_HEADER_BYTES, 0) < WAL_HEADER_BYTES) return false;
    const first = scratch.readUInt32BE(HEADER_SALTS);
    const second = scratch.readUInt32BE(HEADER_SALTS + 4);
    this.#pageBytes = scratch.readUInt32BE(HEADER_PAGE_SIZE);
    // The header of an emptied WAL is all zeros.
    if (this.#pageBytes === 0 || (first === this.#salts[0] && second === this.#salts[1])) return false;
    this.#salts = [first, second];
    this.#position = WAL_HEADER_BYTES;
    return true;
  }
}

/** A buffer of twice the size with the same first bytes. */
function enlarge(bytes: Buffer, length: number): Buffer<ArrayBuffer> {
  const larger = Buffer.allocUnsafeSlow(bytes.length * 2);
  bytes.copy(larger, 0, 0, length);
  if (larger.length <= MAX_SCRATCH_BYTES) scratch = larger;
  return larger;
}

/** Calls `visit` for the page of each frame; returns the size of the database, in pages, after the last transaction. */
export function eachPage(
  frames: Buffer,
  pageBytes: number,
  visit: (page: number, content: Buffer) => void,
): number {
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  let databasePages = 0;
  for (let at = 0; at + frameBytes <= frames.length; at += frameBytes) {
    visit(frames.readUInt32BE(at), frames.subarray(at + FRAME_HEADER_BYTES, at + frameBytes));
    databasePages = frames.readUInt32BE(at + FRAME_DATABASE_PAGES) || databasePages;
  }
  return databasePages;
}
