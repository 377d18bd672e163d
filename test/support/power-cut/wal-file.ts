/** The little one has to know of SQLite's write-ahead log: a header of 32 bytes whose salts change each time the log starts over. */
export const WAL_HEADER_BYTES = 32;

/** Tells one run of the log from the next; null for a log without header. */
export function generationOf(wal: Buffer | undefined): string | null {
  return wal === undefined || wal.length < WAL_HEADER_BYTES ? null : wal.toString("hex", 12, 24);
}

export function hasFrames(wal: Buffer | undefined): boolean {
  return wal !== undefined && wal.length > WAL_HEADER_BYTES;
}

/** The one database, by its path in the data folder, whose syncs SQLite does all by itself. */
export function isControlPlane(path: string): boolean {
  return path === "signalbox.db";
}
