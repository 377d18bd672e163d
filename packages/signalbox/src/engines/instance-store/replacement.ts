/**
 * The content that replaces that of a closed database, as a whole database file and as one transaction: the pages are written as frames of SQLite's WAL, which
 * is the form in which the engines make commits durable.
 */
import type { SqlQuery } from "../../core/sql.ts";
import { SqliteConnection } from "../sqlite-file/index.ts";

/** Where the header of a database holds the size of a page, and the versions that say whether it has a WAL (SQLite file format, section 1.3). */
const PAGE_SIZE_OFFSET = 16;
const WRITE_VERSION_OFFSET = 18;
const READ_VERSION_OFFSET = 19;
const WITHOUT_WAL = 1;
const WITH_WAL = 2;
/** A page size of 65,536 bytes is stored as 1. */
const LARGEST_PAGE_BYTES = 65_536;
const FRAME_HEADER_BYTES = 24;

export interface Replacement {
  readonly bytes: Buffer;
  readonly pageBytes: number;
}

/** Runs the statements on a copy of the content, in memory. Throws if the content is not a database. */
export function prepareReplacement(content: Uint8Array, statements: readonly SqlQuery[]): Replacement {
  const copy = Buffer.from(content);
  // A database in memory has no WAL.
  setWal(copy, WITHOUT_WAL);
  const connection = SqliteConnection.open(":memory:", { takesQuotedText: true });
  try {
    connection.deserialize(copy);
    // Reads the header and the schema.
    connection.exec("BEGIN; SELECT count(*) FROM sqlite_schema");
    for (const statement of statements) connection.run(statement);
    connection.exec("COMMIT");
    const bytes = Buffer.from(connection.serialize());
    setWal(bytes, WITH_WAL);
    return { bytes, pageBytes: pageBytesOf(bytes) };
  } finally {
    connection.close();
  }
}

/** All pages, as the frames of one transaction. */
export function toFrames({ bytes, pageBytes }: Replacement): Buffer {
  const count = bytes.length / pageBytes;
  const frameBytes = FRAME_HEADER_BYTES + pageBytes;
  const frames = Buffer.alloc(count * frameBytes);
  for (let page = 1; page <= count; page++) {
    const at = (page - 1) * frameBytes;
    frames.writeUInt32BE(page, at);
    bytes.copy(frames, at + FRAME_HEADER_BYTES, (page - 1) * pageBytes, page * pageBytes);
  }
  frames.writeUInt32BE(count, (count - 1) * frameBytes + 4);
  return frames;
}

function setWal(bytes: Buffer, version: number): void {
  bytes[WRITE_VERSION_OFFSET] = version;
  bytes[READ_VERSION_OFFSET] = version;
}

function pageBytesOf(bytes: Buffer): number {
  const size = bytes.readUInt16BE(PAGE_SIZE_OFFSET);
  return size === 1 ? LARGEST_PAGE_BYTES : size;
}
