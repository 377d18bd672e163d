/**
 * Statements that delete calls of one day, with their bodies, and subtract them from the counts in the same statement.
 *
 * `= ANY (ARRAY (…))` looks up each id in the index. With `IN` or a join, the planner compares all rows with all ids while it has no statistics
 * of a new partition.
 */
import type { Queryable } from "../../../core/queryable.ts";
import { rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { type DayStart, idsOf } from "./days.ts";

/** Rows in one transaction: some ten milliseconds. */
export const CHUNK_ROWS = 2000;
/** Size of a body's row besides the body: headers, id, and the entry in the index. */
export const BODY_OVERHEAD_BYTES = 128;

/** The bytes of rows are subtracted by their mean: their exact size is not stored. */
const SUBTRACT_ROWS = rawSql(
  "rows = greatest(d.rows - n.rows, 0), row_bytes = CASE WHEN d.rows <= n.rows THEN 0 ELSE d.row_bytes - d.row_bytes / d.rows * n.rows END",
);
const SUBTRACT_BODIES = rawSql(
  "bodies = greatest(d.bodies - n.bodies, 0), body_bytes = CASE WHEN d.bodies <= n.bodies THEN 0 ELSE greatest(d.body_bytes - n.body_bytes, 0) END",
);
const BODY_SIZE = rawSql(`octet_length(bytes) + ${BODY_OVERHEAD_BYTES}`);

/** Deletes up to `limit` rows of a gateway on a day, oldest first; returns their number. `condition` selects rows of the gateway. */
export async function deleteRows(
  tx: Queryable,
  gateway: number,
  day: DayStart,
  condition: SqlQuery,
  limit: number,
): Promise<number> {
  const [from, to] = idsOf(day);
  const row = await tx.get<{ deleted: number }>(sql`
    WITH found AS (
      SELECT id FROM call_log WHERE ${condition} AND id >= ${from} AND id < ${to} ORDER BY id LIMIT ${limit}
    ), gone AS (
      DELETE FROM call_log WHERE gateway = ${gateway} AND id >= ${from} AND id < ${to} AND id = ANY (ARRAY (SELECT id FROM found)) RETURNING id
    ), bodies AS (
      DELETE FROM call_log_body WHERE id >= ${from} AND id < ${to} AND id = ANY (ARRAY (SELECT id FROM gone)) RETURNING ${BODY_SIZE} AS bytes
    ), n AS (
      SELECT (SELECT count(*) FROM gone) AS rows, (SELECT count(*) FROM bodies) AS bodies,
        (SELECT coalesce(sum(bytes), 0)::bigint FROM bodies) AS body_bytes
    ), counts AS (
      UPDATE call_log_count AS c SET rows = c.rows - n.rows FROM n WHERE c.gateway = ${gateway} AND c.day = ${day}
    ), days AS (
      UPDATE call_log_day AS d SET ${SUBTRACT_ROWS}, ${SUBTRACT_BODIES} FROM n WHERE d.day = ${day}
    )
    SELECT rows::float8 AS deleted FROM n`);
  return row?.deleted ?? 0;
}

export interface DeletedOldest {
  readonly deleted: number;
  /** Left on the day, as counted. */
  readonly remaining: number;
}

/** Deletes the bodies of the oldest calls of a day, of all gateways: a chunk, or as many as have `wantedBytes`. */
export async function deleteOldestBodies(
  tx: Queryable,
  day: DayStart,
  wantedBytes: number,
): Promise<DeletedOldest> {
  const [from, to] = idsOf(day);
  const row = await tx.get<DeletedOldest>(sql`
    WITH oldest AS (
      SELECT id, side, ${BODY_SIZE} AS bytes FROM call_log_body WHERE id >= ${from} AND id < ${to} ORDER BY id, side LIMIT ${CHUNK_ROWS}
    ), wanted AS (
      SELECT id FROM (SELECT *, sum(bytes) OVER (ORDER BY id, side) AS upto FROM oldest) AS o WHERE upto - bytes < ${wantedBytes}
    ), gone AS (
      DELETE FROM call_log_body WHERE id >= ${from} AND id < ${to} AND id = ANY (ARRAY (SELECT id FROM wanted)) RETURNING ${BODY_SIZE} AS bytes
    ), n AS (SELECT count(*) AS bodies, coalesce(sum(bytes), 0)::bigint AS body_bytes FROM gone)
    UPDATE call_log_day AS d SET ${SUBTRACT_BODIES} FROM n WHERE d.day = ${day}
    RETURNING n.bodies::float8 AS deleted, d.bodies::float8 AS remaining`);
  return row ?? { deleted: 0, remaining: 0 };
}

/** Deletes a chunk of the oldest rows of a day without bodies, of all gateways. */
export async function deleteOldestRows(tx: Queryable, day: DayStart): Promise<DeletedOldest> {
  const [from, to] = idsOf(day);
  const row = await tx.get<DeletedOldest>(sql`
    WITH oldest AS (
      SELECT gateway, id FROM call_log WHERE id >= ${from} AND id < ${to} ORDER BY id LIMIT ${CHUNK_ROWS}
    ), gone AS (
      DELETE FROM call_log WHERE id >= ${from} AND id < ${to} AND gateway = ANY (ARRAY (SELECT DISTINCT gateway FROM oldest))
        AND id = ANY (ARRAY (SELECT id FROM oldest)) RETURNING gateway
    ), counted AS (SELECT gateway, count(*) AS rows FROM gone GROUP BY gateway
    ), counts AS (
      UPDATE call_log_count AS c SET rows = c.rows - counted.rows FROM counted WHERE c.gateway = counted.gateway AND c.day = ${day}
    ), n AS (SELECT count(*) AS rows FROM gone)
    UPDATE call_log_day AS d SET ${SUBTRACT_ROWS} FROM n WHERE d.day = ${day}
    RETURNING n.rows::float8 AS deleted, d.rows::float8 AS remaining`);
  return row ?? { deleted: 0, remaining: 0 };
}
