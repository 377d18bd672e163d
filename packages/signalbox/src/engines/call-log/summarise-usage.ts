/** Reads usage from the `hourly` tables of the day files and adds it up by the requested groups. */
import { rawSql, sql, type SqlQuery, sqlList } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { toSqlName, USAGE_SUMS, type UsageSums } from "./columns.ts";
import { DAY_MS } from "./day-files.ts";
import { FIRST_TOKEN_COLUMNS, LATENCY_COLUMNS, SUM_COLUMNS } from "./day-schema.ts";
import { HOUR_MS } from "./batch-usage.ts";
import { addUsageFigures, type UsageFigures, type UsageGroup, type UsageQuery } from "./usage.ts";

/** The sums of one group, and its group fields. */
export type HourlySums = Readonly<Record<string, string | number | null>>;

const NULL = rawSql("NULL");
const HOUR = rawSql("hour");
const DAY = rawSql(String(DAY_MS));
const SUMS = rawSql(SUM_COLUMNS.map((name) => `sum(${name}) AS ${name}`).join(", "));
const SUM_NAMES = Object.keys(USAGE_SUMS);

export function summariseDay(connection: SqliteConnection, query: UsageQuery): UsageFigures[] {
  const groups = groupColumns(query.groupBy, HOUR);
  const gateways =
    query.gatewayIds === null ? rawSql("") : sql` AND gateway.gateway_id IN (${sqlList(query.gatewayIds)})`;
  const from = Math.floor(query.from / HOUR_MS) * HOUR_MS;
  const rows = connection.all<HourlySums>(sql`
    SELECT ${groups.time} AS time, ${groups.gateway} AS gateway_id, ${groups.provider} AS provider, ${groups.model} AS model,
      ${SUMS}
    FROM hourly JOIN gateway ON gateway.key = hourly.gateway
    WHERE gateway.account_id = ${query.accountId}${gateways} AND hour >= ${from} AND hour < ${query.to}
    GROUP BY 1, 2, 3, 4`);
  // Without groups, an empty day yields one row of nulls.
  return rows.filter((row) => row["calls"] !== null).map(toFigures);
}

/** `hour` is the SQL of the hour, or of the minute if the query groups by minute. */
export function groupColumns(
  groupBy: readonly UsageGroup[],
  hour: SqlQuery,
): Record<"time" | "gateway" | "provider" | "model", SqlQuery> {
  const has = (group: UsageGroup) => groupBy.includes(group);
  const time = has("hour") || has("minute") ? hour : has("day") ? sql`${hour} - ${hour} % ${DAY}` : NULL;
  return {
    time,
    gateway: has("gateway") ? rawSql("gateway.gateway_id") : NULL,
    provider: has("provider") ? rawSql("provider") : NULL,
    model: has("model") ? rawSql("model") : NULL,
  };
}

export function toFigures(row: HourlySums): UsageFigures {
  const count = (name: string) => Number(row[name] ?? 0);
  const text = (name: string) => (row[name] === null ? null : String(row[name]));
  const sums = Object.fromEntries(SUM_NAMES.map((name) => [name, count(toSqlName(name))]));
  return {
    time: row["time"] === null ? null : count("time"),
    gatewayId: text("gateway_id"),
    provider: text("provider"),
    model: text("model"),
    ...(sums as UsageSums),
    latency: LATENCY_COLUMNS.map(count),
    firstToken: FIRST_TOKEN_COLUMNS.map(count),
  };
}

/** Adds up the figures of several days. */
export class UsageTotals {
  readonly #byGroup = new Map<string, UsageFigures>();

  add(figures: readonly UsageFigures[]): void {
    for (const one of figures) {
      const key = JSON.stringify([one.time, one.gatewayId, one.provider, one.model]);
      const known = this.#byGroup.get(key);
      this.#byGroup.set(key, known === undefined ? one : addUsageFigures(known, one));
    }
  }

  /** Sorted by time, then by gateway, provider and model. */
  all(): UsageFigures[] {
    return [...this.#byGroup.values()].sort(
      (a, b) =>
        (a.time ?? 0) - (b.time ?? 0) ||
        compareNames(a.gatewayId, b.gatewayId) ||
        compareNames(a.provider, b.provider) ||
        compareNames(a.model, b.model),
    );
  }
}

function compareNames(a: string | null, b: string | null): number {
  return a === b ? 0 : (a ?? "") < (b ?? "") ? -1 : 1;
}
