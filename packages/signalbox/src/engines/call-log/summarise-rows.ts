/** Adds up the calls of a day file by token or metadata, in parts: a day can have millions, and the newest are read first. */
import { joinSql, rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { toSqlName, USAGE_SUMS, type UsageSum } from "./columns.ts";
import { DAY_MS, startOfDay } from "./day-files.ts";
import { FIRST_TOKEN_COLUMNS, LATENCY_COLUMNS } from "./day-schema.ts";
import { HOUR_MS, MINUTE_MS } from "./batch-usage.ts";
import { type HourlySums, toFigures } from "./summarise-usage.ts";
import { LATENCY_BUCKETS_MS, type UsageGroup } from "./usage.ts";
import type { DayFiles } from "./scan-files.ts";
import {
  MAX_KEPT_VALUES,
  type UsageByPart,
  type UsageByQuery,
  UsageByTotals,
  type UsageDimension,
} from "./usage-by.ts";

/** Rows of one part: about 100 ms. All their values fit into one part's totals, so none is added up early. */
const PART_ROWS = 10_000;

const SUMS: [string, UsageSum][] = Object.entries(USAGE_SUMS);
const IS_STREAM =
  "(response_content_type LIKE '%event-stream%' OR response_content_type LIKE '%eventstream%')";

/** The sums of the hourly usage, from the rows. */
const ROW_SUMS = rawSql(
  [
    ...SUMS.map(([name, { sql: text }]) => `sum(${text}) AS ${toSqlName(name)}`),
    ...LATENCY_COLUMNS.map((name, i) => `sum(${isInBucket("duration_ms", i)}) AS ${name}`),
    ...FIRST_TOKEN_COLUMNS.map(
      (name, i) =>
        `sum(coalesce(first_byte_ms, 0) > 0 AND ${IS_STREAM} AND ${isInBucket("first_byte_ms", i)}) AS ${name}`,
    ),
  ].join(", "),
);

const CURSOR = /^(\d{4}-\d{2}-\d{2})\.(\d{1,15})$/;

/** Reads one part of one file: `PART_ROWS` rows, whether they match or not. */
export function summarisePart(files: DayFiles, query: UsageByQuery, cursor: string | null): UsageByPart {
  const [, cursorDay = null, seq = ""] = CURSOR.exec(cursor ?? "") ?? [];
  const totals = new UsageByTotals(MAX_KEPT_VALUES);
  // Newest first: if there are too many rows, the recent ones are counted.
  for (const day of files.days().toReversed()) {
    const start = startOfDay(day);
    if (cursorDay !== null && day > cursorDay) continue;
    if (start + 2 * DAY_MS <= query.from || start - DAY_MS >= query.to) continue;
    const connection = files.open(day);
    const last = day === cursorDay ? Number(seq) - 1 : connection && lastSeq(connection);
    if (connection === undefined || last === undefined || last < 0) continue;
    if (query.groupBy.includes("minute") && endedBefore(connection, last, query.from)) break;
    const first = Math.max(0, last - PART_ROWS + 1);
    const oldest = readPart(connection, query, totals, first, last);
    return { ...totals.finish(oldest ?? start), rows: last - first + 1, next: `${day}.${first}` };
  }
  return { ...totals.finish(null), rows: 0, next: null };
}

/**
 * Whether this row, and with it every row before it, was recorded before the period: rows are recorded when calls end. The last hour of a
 * day with millions of calls is then read without the rest of the day. The slack covers a clock that was set back.
 */
function endedBefore(connection: SqliteConnection, seq: number, from: number): boolean {
  const row = connection.get<{ ended: number }>(
    sql`SELECT created_at + coalesce(duration_ms, 0) AS ended FROM call WHERE seq <= ${seq} ORDER BY seq DESC LIMIT 1`,
  );
  return row !== undefined && row.ended + HOUR_MS < from;
}

function lastSeq(connection: SqliteConnection): number {
  return connection.get<{ seq: number | null }>(sql`SELECT max(seq) AS seq FROM call`)?.seq ?? -1;
}

/** Returns the time of the oldest call. */
function readPart(
  connection: SqliteConnection,
  query: UsageByQuery,
  totals: UsageByTotals,
  first: number,
  last: number,
): number | null {
  const { dimensions } = query;
  const labels = dimensions.length === 0 ? [rawSql("NULL")] : dimensions.map((one) => valueOf(one));
  const columns = labels.map((value, i) => sql`${value} AS ${rawSql(`label_${i}`)}`);
  const groups = groupColumns(query.groupBy);
  const numbers = Array.from({ length: 4 + columns.length }, (_, i) => String(i + 1)).join(", ");
  // `CROSS JOIN` keeps the order of the tables: with the gateway first, every part would read the whole file.
  const found = connection.all<HourlySums>(sql`
    SELECT ${groups.time} AS time, ${groups.gateway} AS gateway_id, ${groups.provider} AS provider, ${groups.model} AS model,
      ${joinSql(columns, ", ")}, min(created_at) AS oldest, ${ROW_SUMS}
    FROM call CROSS JOIN gateway ON gateway.key = call.gateway
    WHERE call.seq >= ${first} AND call.seq <= ${last} AND ${conditionsOf(query)}
    GROUP BY ${rawSql(numbers)}`);
  let oldest: number | null = null;
  for (const row of found) {
    totals.add(
      dimensions.map((_, i) => textOf(row[`label_${i}`] ?? null)),
      toFigures(row),
    );
    oldest = Math.min(oldest ?? Infinity, Number(row["oldest"]));
  }
  return oldest;
}

function conditionsOf({ accountId, gatewayIds, from, to, only }: UsageByQuery): SqlQuery {
  const conditions = [
    sql`gateway.account_id = ${accountId} AND created_at >= ${from} AND created_at < ${to}`,
  ];
  if (gatewayIds !== null) conditions.push(sql`gateway.gateway_id IN (${sqlList(gatewayIds)})`);
  for (const { dimension, value } of only) {
    const own = valueOf(dimension);
    conditions.push(value === null ? sql`${own} IS NULL` : sql`${own} = ${value}`);
  }
  return joinSql(conditions, " AND ");
}

/** A number, true or false as text. A value that is not a text, a number or a boolean is null. */
function valueOf(dimension: UsageDimension): SqlQuery {
  if (dimension.kind === "token") return rawSql("token_id");
  // The parser of the query refuses keys with quotes and backslashes.
  const path = `$."${dimension.key}"`;
  return sql`CASE json_type(metadata, ${path}) WHEN 'true' THEN 'true' WHEN 'false' THEN 'false'
    ELSE CAST(json_extract(metadata, ${path}) AS TEXT) END`;
}

function groupColumns(
  groupBy: readonly UsageGroup[],
): Record<"time" | "gateway" | "provider" | "model", SqlQuery> {
  const has = (group: UsageGroup) => groupBy.includes(group);
  const unit = has("minute") ? MINUTE_MS : has("hour") ? HOUR_MS : has("day") ? DAY_MS : null;
  const none = rawSql("NULL");
  return {
    time: unit === null ? none : rawSql(`created_at - created_at % ${unit}`),
    gateway: has("gateway") ? rawSql("gateway.gateway_id") : none,
    provider: has("provider") ? rawSql("provider") : none,
    model: has("model") ? rawSql("model") : none,
  };
}

function isInBucket(column: string, i: number): string {
  const upper = LATENCY_BUCKETS_MS[i];
  const lower = LATENCY_BUCKETS_MS[i - 1];
  const parts = [
    ...(lower === undefined ? [] : [`${column} > ${lower}`]),
    ...(upper === undefined ? [] : [`${column} <= ${upper}`]),
  ];
  return `(${parts.join(" AND ")})`;
}

function textOf(value: string | number | null): string | null {
  return value === null ? null : String(value);
}
