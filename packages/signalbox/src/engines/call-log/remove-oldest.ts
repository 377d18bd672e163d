/** Removes the oldest bodies and rows of a day file, and gives free pages back to the disk. */
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { pageBytesOf } from "./day-file.ts";
import { readFileSize } from "./log-size.ts";

/** Bodies in one transaction: about ten milliseconds, including the shrinking of the file. Batches can be written in between. */
const CHUNK_BYTES = 4 * 1024 * 1024;
const CHUNK_BODIES = 2000;
const CHUNK_ROWS = 2000;
/** Twice a chunk of bodies, so that shrinking keeps up with removing. */
const SHRINK_BYTES = 2 * CHUNK_BYTES;
const AUTO_VACUUM = rawSql("PRAGMA auto_vacuum");

/** Runs inside the caller's transaction; removes at most a chunk and returns the number of bodies. */
export function removeOldestBodies(connection: SqliteConnection, wantedBytes: number): number {
  const wanted = Math.min(wantedBytes, CHUNK_BYTES);
  const oldest = connection.all<{ place: number; size: number }>(
    sql`SELECT place, length(bytes) AS size FROM body ORDER BY place LIMIT ${CHUNK_BODIES}`,
  );
  let bytes = 0;
  let count = 0;
  let last = -1;
  for (const { place, size } of oldest) {
    if (bytes >= wanted) break;
    bytes += size;
    count += 1;
    last = place;
  }
  if (count > 0) connection.run(sql`DELETE FROM body WHERE place <= ${last}`);
  return count;
}

/** Runs inside the caller's transaction, on a file without bodies; returns the number of rows removed by the gateway's number in the file. */
export function removeOldestRows(connection: SqliteConnection): Map<number, number> {
  const oldest = connection.all<{ seq: number; gateway: number }>(
    sql`SELECT seq, gateway FROM call ORDER BY seq LIMIT ${CHUNK_ROWS}`,
  );
  const counts = new Map<number, number>();
  for (const { gateway } of oldest) counts.set(gateway, (counts.get(gateway) ?? 0) + 1);
  const last = oldest.at(-1)?.seq;
  if (last !== undefined) connection.run(sql`DELETE FROM call WHERE seq <= ${last}`);
  for (const [gateway, count] of counts) {
    connection.run(sql`UPDATE gateway SET rows = rows - ${count} WHERE key = ${gateway}`);
  }
  return counts;
}

export function hasBodies(connection: SqliteConnection): boolean {
  return connection.get(sql`SELECT 1 FROM body LIMIT 1`) !== undefined;
}

export function hasRows(connection: SqliteConnection): boolean {
  return connection.get(sql`SELECT 1 FROM call LIMIT 1`) !== undefined;
}

/** Gives a chunk of free pages back to the disk; false if the file has none, or cannot be shrunk yet. */
export function shrinkFile(connection: SqliteConnection): boolean {
  if (readFileSize(connection).freeBytes === 0) return false;
  if (connection.get<{ auto_vacuum: number }>(AUTO_VACUUM)?.auto_vacuum === 2) {
    connection.exec(`PRAGMA incremental_vacuum(${SHRINK_BYTES / pageBytesOf(connection)})`);
    return true;
  }
  // A file created without incremental vacuum must be rewritten as a whole, which is cheap when it has no bodies.
  if (hasBodies(connection)) return false;
  connection.exec("PRAGMA auto_vacuum = INCREMENTAL; VACUUM;");
  return true;
}
