/** The totals of a day file: adds those of a commit, and merges them now and then. Runs in the writer's thread. */
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { TotalsDelta } from "./batch-usage.ts";
import { BatchUsage } from "./batch-usage.ts";
import { mergeBlobs, planMerge, type StoredDelta } from "./merge-totals.ts";
import { StoredCallReader } from "./stored-call-reader.ts";

/** Rows that one step of a rebuild counts: some ten milliseconds. */
const REBUILD_ROWS = 5000;

/** Within the transaction that adds the calls. */
export function addTotals(connection: SqliteConnection, deltas: readonly TotalsDelta[]): void {
  for (const { gateway, hour, dimension, bytes } of deltas) {
    connection.run(
      sql`INSERT INTO totals_delta (gateway, hour, dimension, bytes) VALUES (${gateway}, ${hour}, ${dimension}, ${bytes})`,
    );
  }
}

export function countDeltas(connection: SqliteConnection): number {
  return connection.get<{ n: number }>(sql`SELECT count(*) AS n FROM totals_delta`)?.n ?? 0;
}

/** Within a transaction. */
export function mergeTotals(connection: SqliteConnection): void {
  const deltas = connection.all<StoredDelta>(
    sql`SELECT gateway, hour, dimension, bytes FROM totals_delta ORDER BY key`,
  );
  const kept = connection.all<{ gateway: number; time: number; dimension: string }>(
    sql`SELECT gateway, time, dimension FROM totals WHERE is_day = 1`,
  );
  for (const { gateway, isDay, time, dimension, blobs } of planMerge(deltas, kept)) {
    const place = sql`dimension = ${dimension} AND is_day = ${isDay ? 1 : 0} AND time = ${time} AND gateway = ${gateway}`;
    const known = connection.get<{ bytes: Uint8Array }>(sql`SELECT bytes FROM totals WHERE ${place}`);
    const bytes = mergeBlobs(known === undefined ? blobs : [known.bytes, ...blobs]);
    connection.run(
      known === undefined
        ? sql`INSERT INTO totals (gateway, is_day, time, dimension, bytes) VALUES (${gateway}, ${isDay ? 1 : 0}, ${time}, ${dimension}, ${bytes})`
        : sql`UPDATE totals SET bytes = ${bytes} WHERE ${place}`,
    );
  }
  connection.run(rawSql("DELETE FROM totals_delta"));
}

/** Within a transaction. Counts a part of the calls that were stored while totals were switched off; returns their number. */
export function countStoredCalls(connection: SqliteConnection): number {
  const rows = connection.all<Readonly<Record<string, string | number | null>>>(
    sql`SELECT * FROM call WHERE counted = 0 ORDER BY seq LIMIT ${REBUILD_ROWS}`,
  );
  const usage = new BatchUsage();
  const call = new StoredCallReader();
  for (const row of rows) {
    call.row = row;
    usage.add(call, Number(row["gateway"]));
  }
  addTotals(connection, usage.totals());
  const last = Number(rows.at(-1)?.["seq"] ?? -1);
  connection.run(sql`UPDATE call SET counted = 1 WHERE counted = 0 AND seq <= ${last}`);
  return rows.length;
}

export function hasUncounted(connection: SqliteConnection): boolean {
  return connection.get(sql`SELECT 1 FROM call WHERE counted = 0 LIMIT 1`) !== undefined;
}
