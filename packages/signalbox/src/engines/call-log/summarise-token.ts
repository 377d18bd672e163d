/**
 * Adds up the calls of one token in a day file. The hourly sums do not distinguish tokens, so the rows are read, in parts: a day can have millions.
 */
import { rawSql, sql, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { type NumberColumn, toSqlName, USAGE_SUMS, type UsageSums } from "./columns.ts";
import { DAY_MS } from "./day-files.ts";
import { CALL_SELECT_LIST } from "./day-schema.ts";
import { HOUR_MS, isStream, latencyBucket } from "./hourly-usage.ts";
import { addUsageFigures, LATENCY_BUCKETS_MS, type UsageFigures, type UsageQuery } from "./usage.ts";

const PART = 5000;
const COLUMNS = rawSql(
  CALL_SELECT_LIST.split(", ")
    .map((name) => `call.${name}`)
    .join(", "),
);
const SUMS = Object.entries(USAGE_SUMS);

type Row = Readonly<Record<string, string | number | null>>;

export function summariseTokenDay(
  connection: SqliteConnection,
  query: UsageQuery,
  tokenId: string,
): UsageFigures[] {
  const gateways =
    query.gatewayIds === null ? rawSql("") : sql` AND gateway.gateway_id IN (${sqlList(query.gatewayIds)})`;
  const from = Math.floor(query.from / HOUR_MS) * HOUR_MS;
  const groups = new Map<string, UsageFigures>();
  let after = -1;
  for (;;) {
    const rows = connection.all<Row>(sql`
      SELECT gateway.gateway_id, ${COLUMNS} FROM call JOIN gateway ON gateway.key = call.gateway
      WHERE call.token_id = ${tokenId} AND call.seq > ${after} AND gateway.account_id = ${query.accountId}${gateways}
        AND created_at >= ${from} AND created_at < ${query.to}
      ORDER BY call.seq LIMIT ${PART}`);
    for (const row of rows) add(groups, toFigures(row, query));
    if (rows.length < PART) return [...groups.values()];
    after = Number(rows.at(-1)?.["seq"] ?? after);
  }
}

function add(groups: Map<string, UsageFigures>, one: UsageFigures): void {
  const key = JSON.stringify([one.time, one.gatewayId, one.provider, one.model]);
  const known = groups.get(key);
  groups.set(key, known === undefined ? one : addUsageFigures(known, one));
}

function toFigures(row: Row, { groupBy }: UsageQuery): UsageFigures {
  const call = { number: (name: NumberColumn) => Number(row[toSqlName(name)] ?? 0) };
  const createdAt = call.number("createdAt");
  const unit = groupBy.includes("hour") ? HOUR_MS : groupBy.includes("day") ? DAY_MS : null;
  const bucket = latencyBucket(call.number("durationMs"));
  const firstMs = call.number("firstByteMs");
  return {
    time: unit === null ? null : createdAt - (createdAt % unit),
    gatewayId: groupBy.includes("gateway") ? String(row["gateway_id"]) : null,
    provider: groupBy.includes("provider") ? String(row["provider"]) : null,
    model: groupBy.includes("model") ? String(row["model"]) : null,
    ...(Object.fromEntries(SUMS.map(([name, { of }]) => [name, of(call)])) as UsageSums),
    latency: oneIn(bucket),
    firstToken: oneIn(
      firstMs === 0 || !isStream(String(row["response_content_type"])) ? -1 : latencyBucket(firstMs),
    ),
  };
}

/** A histogram with one call, or with none. */
function oneIn(bucket: number): number[] {
  return Array.from({ length: LATENCY_BUCKETS_MS.length + 1 }, (_, i) => (i === bucket ? 1 : 0));
}
