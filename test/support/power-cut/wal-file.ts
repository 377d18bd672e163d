/**
 * SQLite's write-ahead log, as far as needed here: a header of 32 bytes whose salts change each time the WAL
 * restarts.
 */
export const WAL_HEADER_BYTES = 32;

/** Distinguishes one generation of the WAL from the next; null for a WAL without header. */
export function generationOf(wal: Buffer | undefined): string | null {
  return wal === undefined || wal.length < WAL_HEADER_BYTES ? null : wal.toString("hex", 12, 24);
}

export function hasFrames(wal: Buffer | undefined): boolean {
  return wal !== undefined && wal.length > WAL_HEADER_BYTES;
}

/** The one database, by its path in the data folder, that SQLite syncs by itself. */
export function isControlPlane(path: string): boolean {
  return path === "signalbox.db";
}
