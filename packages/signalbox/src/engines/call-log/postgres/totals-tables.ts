/**
 * The totals by token and metadata in PostgreSQL: merges what commits of all nodes have added, and counts calls that were stored without them.
 * Runs in the writer's thread. Deltas are only added, so nodes do not wait for each other; of all nodes, one at a time merges.
 */
import type { Client } from "pg";
import { BatchUsage, type TotalsDelta } from "../batch-usage.ts";
import { MAX_DELTAS, dayOfHour, mergeBlobs, planMerge, type StoredDelta } from "../merge-totals.ts";
import { StoredCallReader } from "../stored-call-reader.ts";
import { exclusively } from "./trim.ts";

/** Deltas of one merge. Those of other nodes may be more than a node has written itself. */
const MERGE_DELTAS = 4 * MAX_DELTAS;
/** Rows that one step of a rebuild counts. */
const REBUILD_ROWS = 5000;

export const INSERT_DELTAS = `
INSERT INTO call_log_totals_delta (gateway, hour, dimension, bytes)
SELECT gateway, hour, dimension, decode(bytes, 'base64')
FROM json_to_recordset($1::json) AS r(gateway integer, hour bigint, dimension text, bytes text)`;

/** The value of the parameter of `INSERT_DELTAS`. */
export function deltasJson(deltas: readonly TotalsDelta[]): string {
  return JSON.stringify(
    deltas.map(({ bytes, ...delta }) => ({ ...delta, bytes: Buffer.from(bytes).toString("base64") })),
  );
}

/** Merges the oldest deltas, unless another node does. */
export async function mergeTotals(client: Client): Promise<void> {
  await exclusively(client, async () => {
    const { rows: deltas } = await client.query<StoredDelta & { key: number }>(
      `DELETE FROM call_log_totals_delta
       WHERE key = ANY (ARRAY (SELECT key FROM call_log_totals_delta ORDER BY key LIMIT ${MERGE_DELTAS}))
       RETURNING key, gateway, hour, dimension, bytes`,
    );
    deltas.sort((a, b) => a.key - b.key);
    const days = [...new Set(deltas.map(({ hour }) => dayOfHour(hour)))];
    const { rows: kept } = await client.query<{ gateway: number; time: number; dimension: string }>(
      "SELECT gateway, time, dimension FROM call_log_totals WHERE is_day AND time = ANY ($1::bigint[])",
      [days],
    );
    for (const { gateway, isDay, time, dimension, blobs } of planMerge(deltas, kept)) {
      const place = [gateway, isDay, time, dimension];
      const { rows } = await client.query<{ bytes: Uint8Array }>(
        "SELECT bytes FROM call_log_totals WHERE gateway = $1 AND is_day = $2 AND time = $3 AND dimension = $4",
        place,
      );
      const bytes = mergeBlobs([...rows.map((row) => row.bytes), ...blobs]);
      await client.query(
        `INSERT INTO call_log_totals (gateway, is_day, time, dimension, bytes) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (dimension, is_day, time, gateway) DO UPDATE SET bytes = excluded.bytes`,
        [...place, Buffer.from(bytes)],
      );
    }
    return true;
  });
}

/** Counts some calls that are not part of the totals; true if more may be left, null if another node is at work. */
export async function countStoredCalls(client: Client): Promise<boolean | null> {
  return exclusively(client, async () => {
    const { rows } = await client.query<Readonly<Record<string, string | number | null>>>(
      `SELECT * FROM call_log WHERE counted = 0 ORDER BY id LIMIT ${REBUILD_ROWS} FOR UPDATE`,
    );
    if (rows.length === 0) return false;
    const usage = new BatchUsage();
    const call = new StoredCallReader();
    for (const row of rows) {
      call.row = row;
      usage.add(call, Number(row["gateway"]));
    }
    await client.query(INSERT_DELTAS, [deltasJson(usage.totals())]);
    const ids = rows.map(({ id }) => String(id)).sort();
    await client.query(
      `UPDATE call_log SET counted = 1 WHERE counted = 0 AND gateway = ANY ($1::int[]) AND id = ANY ($2::text[])
         AND id >= $3 AND id <= $4`,
      [[...new Set(rows.map((row) => Number(row["gateway"])))], ids, ids[0], ids.at(-1)],
    );
    return true;
  });
}
