/**
 * The part of SQLite's write-ahead log that the journal lives on (SQLite file format, section 4): a header of 32 bytes with the page size and
 * two salts, then frames of 24 bytes and a page. A frame belongs to the log's current run if it carries the header's salts, and ends a
 * transaction if the size of the database stands in it.
 */
import { closeSync, fstatSync, openSync, readSync } from "node:fs";

const HEADER_BYTES = 32;
const HEADER_PAGE_SIZE = 8;
const HEADER_SALTS = 16;
export const FRAME_HEAD_BYTES = 24;
const FRAME_DATABASE_PAGES = 4;
const FRAME_SALTS = 8;

/** Frames are read through one buffer, for one instance at a time; what does not fit gets one of its own. */
const scratch = Buffer.allocUnsafeSlow(64 * 1024);

/** Follows the log of one open database and hands out each committed frame once. */
export class WalTail {
  readonly #path: string;
  #fd = -1;
  /** Where the next unread frame starts; 0 until the header was read. */
  #position = 0;
  #salts: readonly [number, number] = [0, 0];
  #pageBytes = 0;

  constructor(databasePath: string) {
    this.#path = `${databasePath}-wal`;
  }

  get pageBytes(): number {
    return this.#pageBytes;
  }

  /** Bytes of the log that were handed out. */
  get length(): number {
    return this.#position;
  }

  /**
   * The frames of all transactions committed since the last call; empty if there are none. The bytes are good until any tail is read again.
   * Must not be called inside a transaction.
   */
  read(): Buffer {
    if (this.#fd === -1) this.#fd = openSync(this.#path, "r");
    if (this.#position === 0) this.#readHeader();
    if (this.#position === 0) return scratch.subarray(0, 0);
    const bytes = this.#readRest();
    const frameBytes = FRAME_HEAD_BYTES + this.#pageBytes;
    let end = 0;
    for (let at = 0; at + frameBytes <= bytes.length; at += frameBytes) {
      if (bytes.readUInt32BE(at + FRAME_SALTS) !== this.#salts[0]) break;
      if (bytes.readUInt32BE(at + FRAME_SALTS + 4) !== this.#salts[1]) break;
      if (bytes.readUInt32BE(at + FRAME_DATABASE_PAGES) !== 0) end = at + frameBytes;
    }
    this.#position += end;
    return bytes.subarray(0, end);
  }

  /** The log was emptied: the next transaction starts it over, with new salts. */
  startOver(): void {
    this.#position = 0;
  }

  close(): void {
    if (this.#fd !== -1) closeSync(this.#fd);
    this.#fd = -1;
  }

  #readHeader(): void {
    if (readSync(this.#fd, scratch, 0, HEADER_BYTES, 0) < HEADER_BYTES) return;
    this.#salts = [scratch.readUInt32BE(HEADER_SALTS), scratch.readUInt32BE(HEADER_SALTS + 4)];
    this.#pageBytes = scratch.readUInt32BE(HEADER_PAGE_SIZE);
    this.#position = HEADER_BYTES;
  }

  #readRest(): Buffer {
    const count = readSync(this.#fd, scratch, 0, scratch.length, this.#position);
    if (count < scratch.length) return scratch.subarray(0, count);
    const rest = Buffer.allocUnsafeSlow(fstatSync(this.#fd).size - this.#position);
    let length = 0;
    while (length < rest.length) {
      const more = readSync(this.#fd, rest, length, rest.length - length, this.#position + length);
      if (more === 0) break;
      length += more;
    }
    return rest.subarray(0, length);
  }
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
