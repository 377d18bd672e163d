/** Answers usage by whom from the totals in PostgreSQL. */
import { setImmediate as nextTurn } from "node:timers/promises";
import { rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { ulidFloor } from "../../../core/ulid.ts";
import { DAY_MS } from "../day-files.ts";
import { MORE_KEYS } from "../totals-dimension.ts";
import { type KeptDimension, planTotals, TotalsQuery, type TotalsRow } from "../totals-query.ts";
import type { UsageBy, UsageByQuery } from "../usage-by.ts";
import { gatewayCondition, timeOfId } from "./call-queries.ts";
import type { CallDatabase, LabelledBlob } from "./call-tables.ts";
import { startOfDayAt } from "./days.ts";
import { storableText } from "./storable.ts";

/** Then the event loop has its turn. By time and not by number: a blob has one value, or thousands. */
const TURN_MS = 3;

/** Marks the label of a dimension that a gateway has on a day. */
const KEPT = "kept";
const NOTHING = rawSql("''::bytea");

/** Null if the rows have to be read: for what totals do not tell apart, and while calls are not part of them. */
export async function summariseTotals(
  database: CallDatabase,
  query: UsageByQuery,
  signal: AbortSignal | undefined,
): Promise<UsageBy | null> {
  const plan = planTotals(query);
  if (plan === null) return null;
  const { from, to, firstDay, endDay } = plan;
  const [firstId, lastId] = [from - DAY_MS, to + 2 * DAY_MS].map((time) =>
    ulidFloor(timeOfId(startOfDayAt(time))),
  );
  const uncounted = await database.get(
    sql`SELECT 1 FROM call_log WHERE counted = 0 AND id >= ${firstId ?? ""} AND id < ${lastId ?? ""} LIMIT 1`,
  );
  if (uncounted !== undefined) return null;
  const names = JSON.stringify(plan.dimensions.map(storableText));
  const isPart = sql`dimension IN (SELECT json_array_elements_text(${names}::json))`;
  const totals = rawSql(
    "call_log_totals AS totals JOIN call_log_gateway AS gateway ON gateway.key = totals.gateway",
  );
  // One statement: a merge between two would be seen twice, or not at all.
  const blobs = await readBlobs(
    database,
    sql`
    SELECT json_build_array(gateway.gateway_id, time, dimension)::text AS label, bytes FROM ${totals}
    WHERE ${isPart} AND ${gatewayCondition(query)} AND is_day AND time >= ${firstDay} AND time < ${endDay}
    UNION ALL
    SELECT json_build_array(gateway.gateway_id, time, dimension)::text, bytes FROM ${totals}
    WHERE ${isPart} AND ${gatewayCondition(query)} AND NOT is_day AND time >= ${from} AND time < ${to}
      AND NOT (time >= ${firstDay} AND time < ${endDay})
    UNION ALL
    SELECT json_build_array(gateway.gateway_id, hour, dimension)::text, bytes
    FROM call_log_totals_delta AS delta JOIN call_log_gateway AS gateway ON gateway.key = delta.gateway
    WHERE ${isPart} AND ${gatewayCondition(query)} AND hour >= ${from} AND hour < ${to}
    UNION ALL
    SELECT json_build_array(gateway.gateway_id, time, dimension, ${KEPT}::text)::text, ${NOTHING} FROM ${totals}
    WHERE dimension IN (${storableText(plan.dimension)}, ${MORE_KEYS}) AND is_day AND ${gatewayCondition(query)}
      AND time > ${from - DAY_MS} AND time < ${to}`,
  );
  const kept: KeptDimension[] = [];
  const rows: TotalsRow[] = [];
  for (const { label, bytes } of blobs) {
    const [gatewayId, time, dimension, mark] = JSON.parse(label) as [string, number, string, string?];
    const place = { gateway_id: gatewayId, time, dimension };
    if (mark === KEPT) kept.push(place);
    else rows.push({ ...place, bytes });
  }
  const sum = new TotalsQuery(withStorableValues(query), plan, kept);
  let begunAt = performance.now();
  const pause = async (): Promise<void> => {
    if (performance.now() - begunAt < TURN_MS) return;
    await nextTurn();
    signal?.throwIfAborted();
    begunAt = performance.now();
  };
  for (const row of rows) {
    sum.add({
      ...row,
      dimension: plan.dimensions.find((name) => storableText(name) === row.dimension) ?? row.dimension,
    });
    await pause();
  }
  sum.rank();
  for (let i = 0; i < sum.parts; i++) {
    sum.sum(i);
    await pause();
  }
  return sum.finish();
}

function readBlobs(database: CallDatabase, query: SqlQuery): Promise<LabelledBlob[]> {
  return database.readBlobs?.(query) ?? database.all<LabelledBlob>(query);
}

/** As they are stored. */
function withStorableValues(query: UsageByQuery): UsageByQuery {
  return {
    ...query,
    only: query.only.map((one) => ({ ...one, value: one.value === null ? null : storableText(one.value) })),
  };
}
