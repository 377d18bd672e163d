/** Reads calls and usage from PostgreSQL, on connections of the control plane. */
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import type { Queryable } from "../../../core/queryable.ts";
import { joinSql, rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import { ulidFloor } from "../../../core/ulid.ts";
import type { BodySide, CallPage, CallRow, GatewayRef, StoredBody } from "../call-log.ts";
import { CALL_COLUMNS, listColumns, toSqlName, USAGE_SUMS, type UsageSum } from "../columns.ts";
import { DAY_MS } from "../day-files.ts";
import { FIRST_TOKEN_COLUMNS, LATENCY_COLUMNS, SUM_COLUMNS } from "../day-schema.ts";
import { HOUR_MS } from "../batch-usage.ts";
import { type CallPageRequest, type CallSelection, type Order } from "../selection.ts";
import { ORDER_SQL } from "../selection-sql.ts";
import { timeSpan } from "../selection-span.ts";
import { type StoredRow, toCallRow } from "../stored-row.ts";
import { groupColumns, type HourlySums, toFigures, UsageTotals } from "../summarise-usage.ts";
import { LATENCY_BUCKETS_MS, type UsageFigures, type UsageQuery } from "../usage.ts";
import { startOfDayAt } from "./days.ts";
import { POSTGRES_SELECTION } from "./postgres-selection.ts";

type PlainPage = Pick<CallPageRequest, "direction" | "limit" | "offset">;

const EVERYTHING: CallSelection = { filters: [], search: "" };
const decompress = promisify(zstdDecompress);
/** The largest time of an id. */
const MAX_TIME = 2 ** 48 - 1;

const ALL_COLUMNS = rawSql(
  listColumns(CALL_COLUMNS)
    .map(({ sqlName }) => sqlName)
    .join(", "),
);
const HOURLY_SUMS = rawSql(SUM_COLUMNS.map((name) => `sum(${name})::float8 AS ${name}`).join(", "));
const SUMS: [string, UsageSum][] = Object.entries(USAGE_SUMS);
/** The sums of `call_log_hour`, from the calls themselves. */
export const ROW_SUMS = rawSql(
  [
    ...SUMS.map(([name, { sql: text }]) => `sum(${text})::float8 AS ${toSqlName(name)}`),
    ...LATENCY_COLUMNS.map(
      (name, i) => `count(*) FILTER (WHERE ${isInBucket("duration_ms", i)})::float8 AS ${name}`,
    ),
    ...FIRST_TOKEN_COLUMNS.map(
      (name, i) =>
        `count(*) FILTER (WHERE first_byte_ms > 0 AND response_content_type ~ 'event-?stream' AND ${isInBucket("first_byte_ms", i)})::float8 AS ${name}`,
    ),
  ].join(", "),
);

interface BodyRow {
  readonly content_type: string;
  readonly is_complete: number;
  readonly is_zstd: boolean;
  readonly bytes: Uint8Array;
}

export class CallQueries {
  readonly #database: Queryable;

  constructor(database: Queryable) {
    this.#database = database;
  }

  /** A page of all calls, in the order of time. */
  async list(gateway: GatewayRef, page: PlainPage): Promise<CallPage> {
    const [rows, total] = await Promise.all([
      this.#database.all<StoredRow>(
        sql`SELECT ${ALL_COLUMNS} FROM call_log WHERE ${conditionOf(gateway, EVERYTHING)} ${orderSql({ ...page, orderBy: "createdAt" })}
            LIMIT ${page.limit} OFFSET ${page.offset}`,
      ),
      this.#count(gateway),
    ]);
    return { rows: rows.map((row) => toCallRow(row, gateway)), total };
  }

  /** The first ids in an order, for a deletion with a limit. */
  async select(
    gateway: GatewayRef,
    selection: CallSelection,
    order: Order,
    limit: number,
  ): Promise<string[]> {
    const rows = await this.#database.all<{ id: string }>(
      sql`SELECT id FROM call_log WHERE ${conditionOf(gateway, selection)} ${orderSql(order)} LIMIT ${limit}`,
    );
    return rows.map(({ id }) => id);
  }

  async get(gateway: GatewayRef, id: string): Promise<CallRow | null> {
    const row = await this.#database.get<StoredRow>(
      sql`SELECT ${ALL_COLUMNS} FROM call_log WHERE gateway = ${keySql(gateway)} AND id = ${id}`,
    );
    return row === undefined ? null : toCallRow(row, gateway);
  }

  async body(gateway: GatewayRef, id: string, side: BodySide, maxBytes: number): Promise<StoredBody | null> {
    const columns = rawSql(
      `c.${side}_content_type AS content_type, c.${side}_body_complete AS is_complete, b.is_zstd, b.bytes`,
    );
    const row = await this.#database.get<BodyRow>(
      sql`SELECT ${columns} FROM call_log AS c JOIN call_log_body AS b ON b.id = ${id} AND b.side = ${side === "request" ? 0 : 1}
          WHERE c.gateway = ${keySql(gateway)} AND c.id = ${id}`,
    );
    if (row === undefined) return null;
    const bytes = row.is_zstd ? await decompress(row.bytes) : row.bytes;
    return {
      contentType: row.content_type,
      bytes: new Uint8Array(bytes.subarray(0, maxBytes)),
      isComplete: row.is_complete === 1,
    };
  }

  async summarise(query: UsageQuery): Promise<UsageFigures[]> {
    const rows = await this.#database.all<HourlySums>(hourlyUsage(query));
    const totals = new UsageTotals();
    totals.add(rows.map(toFigures));
    return totals.all();
  }

  async #count(gateway: GatewayRef): Promise<number> {
    const row = await this.#database.get<{ n: number }>(
      sql`SELECT coalesce(sum(rows), 0)::float8 AS n FROM call_log_count WHERE gateway = ${keySql(gateway)}`,
    );
    return row?.n ?? 0;
  }
}

/** The number of a gateway; null, which equals nothing, if it has no calls. */
export function keySql({ accountId, gatewayId }: GatewayRef): SqlQuery {
  return sql`(SELECT key FROM call_log_gateway WHERE account_id = ${accountId} AND gateway_id = ${gatewayId})`;
}

/** The rows of a gateway that match. The bounds of the ids exclude the partitions of other days. */
export function conditionOf(gateway: GatewayRef | number, selection: CallSelection): SqlQuery {
  const { from, to } = timeSpan(selection);
  const key = typeof gateway === "number" ? gateway : keySql(gateway);
  const conditions = [POSTGRES_SELECTION.where(key, selection)];
  if (Number.isFinite(from)) conditions.push(sql`id >= ${ulidFloor(timeOfId(startOfDayAt(from)))}`);
  if (Number.isFinite(to)) conditions.push(sql`id < ${ulidFloor(timeOfId(startOfDayAt(to) + DAY_MS))}`);
  return joinSql(conditions, " AND ");
}

export function timeOfId(time: number): number {
  return Math.max(0, Math.min(MAX_TIME, time));
}

/** The order of SQLite: null first, then by the values; ids break ties, in the same direction. */
export function orderSql({ orderBy, direction }: Order): SqlQuery {
  const column = ORDER_SQL[orderBy];
  if (orderBy === "createdAt") return sql`ORDER BY id ${rawSql(direction === "asc" ? "ASC" : "DESC")}`;
  return direction === "asc"
    ? sql`ORDER BY ${column} ASC NULLS FIRST, id ASC`
    : sql`ORDER BY ${column} DESC NULLS LAST, id DESC`;
}

export function gatewayCondition({
  accountId,
  gatewayIds,
}: Pick<UsageQuery, "accountId" | "gatewayIds">): SqlQuery {
  const account = sql`gateway.account_id = ${accountId}`;
  if (gatewayIds === null) return account;
  return sql`${account} AND gateway.gateway_id IN (SELECT json_array_elements_text(${JSON.stringify(gatewayIds)}::json))`;
}

function hourlyUsage(query: UsageQuery): SqlQuery {
  const groups = groupColumns(query.groupBy, rawSql("hour"));
  const from = Math.floor(query.from / HOUR_MS) * HOUR_MS;
  return sql`SELECT ${groups.time} AS time, ${groups.gateway} AS gateway_id, ${groups.provider} AS provider, ${groups.model} AS model,
      ${HOURLY_SUMS}
    FROM call_log_hour AS hourly JOIN call_log_gateway AS gateway ON gateway.key = hourly.gateway
    WHERE ${gatewayCondition(query)} AND hour >= ${from} AND hour < ${Math.ceil(query.to)}
    GROUP BY 1, 2, 3, 4`;
}

function isInBucket(column: string, bucket: number): string {
  const above = bucket === 0 ? null : `${column} > ${LATENCY_BUCKETS_MS[bucket - 1]}`;
  const upTo = bucket === LATENCY_BUCKETS_MS.length ? null : `${column} <= ${LATENCY_BUCKETS_MS[bucket]}`;
  return [above, upTo].filter((condition) => condition !== null).join(" AND ");
}
