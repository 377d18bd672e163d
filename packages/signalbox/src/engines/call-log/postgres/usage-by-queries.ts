/** Usage by token or metadata from the rows in PostgreSQL: the values with the most calls first, then the sums. */
import type { Queryable } from "../../../core/queryable.ts";
import { joinSql, rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { ulidFloor } from "../../../core/ulid.ts";
import { DAY_MS } from "../day-files.ts";
import { HOUR_MS, MINUTE_MS } from "../batch-usage.ts";
import { groupColumns, type HourlySums, toFigures } from "../summarise-usage.ts";
import {
  MAX_FIGURES,
  MAX_ROWS_READ,
  type UsageBy,
  type UsageByQuery,
  type UsageDimension,
  type UsageLabels,
} from "../usage-by.ts";
import { gatewayCondition, ROW_SUMS, timeOfId } from "./call-queries.ts";
import { startOfDayAt } from "./days.ts";
import type { CallDatabase } from "./call-tables.ts";
import { storableText } from "./storable.ts";
import { summariseTotals } from "./totals-queries.ts";

export async function summariseBy(
  database: CallDatabase,
  query: UsageByQuery,
  signal?: AbortSignal,
): Promise<UsageBy> {
  const kept = await summariseTotals(database, query, signal);
  return kept ?? summariseRows(database, query, signal);
}

async function summariseRows(
  database: Queryable,
  query: UsageByQuery,
  signal: AbortSignal | undefined,
): Promise<UsageBy> {
  const start = await firstDay(database, query);
  const countedFrom = start !== null && start > query.from ? start : null;
  const from = Math.max(query.from, start ?? 0);
  const labels = sql`json_build_array(${joinSql(query.dimensions.map(valueOf), ", ")})::text`;
  const rows = sql`FROM call_log AS call JOIN call_log_gateway AS gateway ON gateway.key = call.gateway
    WHERE ${conditionsOf({ ...query, from })}`;
  const top = await database.all<{ labels: string; total: number }>(
    sql`SELECT ${labels} AS labels, (count(*) OVER ())::float8 AS total ${rows}
        GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT ${query.maxValues}`,
  );
  signal?.throwIfAborted();
  const listed = sql`(SELECT json_array_elements_text(${JSON.stringify(top.map((one) => one.labels))}::json))`;
  const unit = query.groupBy.includes("minute") ? MINUTE_MS : HOUR_MS;
  const groups = groupColumns(query.groupBy, rawSql(`(created_at - created_at % ${unit})`));
  const found = await database.all<HourlySums>(sql`
    SELECT ${groups.time} AS time, ${groups.gateway} AS gateway_id, ${groups.provider} AS provider, ${groups.model} AS model,
      CASE WHEN ${labels} IN ${listed} THEN ${labels} END AS labels, ${ROW_SUMS} ${rows}
    GROUP BY 1, 2, 3, 4, 5 LIMIT ${MAX_FIGURES + 1}`);
  const figures = found.map((row) => ({
    ...toFigures(row),
    labels: row["labels"] === null ? null : (JSON.parse(String(row["labels"])) as UsageLabels),
  }));
  return {
    figures: figures.sort(
      (a, b) =>
        (a.time ?? 0) - (b.time ?? 0) ||
        Number(a.labels === null) - Number(b.labels === null) ||
        b.calls - a.calls,
    ),
    otherValues: Math.max(0, (top[0]?.total ?? 0) - top.length),
    isBounded: false,
    countedFrom,
  };
}

/** The day before which rows are not read, because the days after it have enough; null if all days together have fewer. */
async function firstDay(database: Queryable, query: UsageByQuery): Promise<number | null> {
  const days = await database.all<{ day: number; rows: number }>(
    sql`SELECT day, sum(rows)::float8 AS rows FROM call_log_count AS count JOIN call_log_gateway AS gateway ON gateway.key = count.gateway
        WHERE ${gatewayCondition(query)} AND day < ${Math.ceil(query.to)} GROUP BY day ORDER BY day DESC`,
  );
  let rows = 0;
  for (const one of days) {
    rows += one.rows;
    if (rows >= MAX_ROWS_READ) return one.day;
  }
  return null;
}

function conditionsOf({ from, to, only, ...query }: UsageByQuery): SqlQuery {
  const [first, last] = [from - DAY_MS, to + 2 * DAY_MS].map((time) =>
    ulidFloor(timeOfId(startOfDayAt(time))),
  );
  const conditions = [
    gatewayCondition(query),
    sql`created_at >= ${Math.floor(from)} AND created_at < ${Math.ceil(to)} AND id >= ${first ?? ""} AND id < ${last ?? ""}`,
    ...only.map(({ dimension, value }) =>
      value === null
        ? sql`${valueOf(dimension)} IS NULL`
        : sql`${valueOf(dimension)} = ${storableText(value)}`,
    ),
  ];
  return joinSql(conditions, " AND ");
}

function valueOf(dimension: UsageDimension): SqlQuery {
  if (dimension.kind === "token") return rawSql("token_id");
  return sql`(metadata::json ->> ${storableText(dimension.key)}::text)`;
}
