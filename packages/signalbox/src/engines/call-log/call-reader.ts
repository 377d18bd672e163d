/**
 * Reads calls and usage figures over all day files. Runs in the reader's thread, on connections of its own, so that a slow question
 * delays neither the writer nor the event loop.
 *
 * Invariants:
 * 1. Files are listed anew for every question: the writer adds and removes them.
 * 2. A page in order of time opens only the files it needs; the others contribute their count, which is kept for as long as the file
 *    does not change.
 */
import { statSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { isUlid, ulidTime } from "../../core/ulid.ts";
import type {
  BodySide,
  CallOrder,
  CallPage,
  CallPageRequest,
  CallRanges,
  CallRow,
  CallSelection,
  GatewayRef,
  Range,
  StoredBody,
  UsageFigures,
  UsageQuery,
} from "./call-log.ts";
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import { type CallColumns, toCallRow } from "./stored-row.ts";
import { DAY_MS, type Day, dayOfId, dayPath, listDays, startOfDay } from "./day-files.ts";
import { findGatewayKey, openDayForReading } from "./day-schema.ts";
import { isEverything, ORDER_COLUMNS, whereSql } from "./selection-sql.ts";
import { summariseDay, UsageSums } from "./summarise-usage.ts";

/** A month of days stays open; older ones are opened when asked for. */
const MAX_OPEN_DAYS = 32;
const MAX_KEPT_COUNTS = 500;
const ASC = rawSql("ASC");
const DESC = rawSql("DESC");
const DATA_VERSION = rawSql("PRAGMA data_version");

interface OpenDay {
  readonly connection: SqliteConnection;
  /** Tells a file from one of the same name that replaced it. */
  readonly inode: number;
  dataVersion: number;
  readonly counts: Map<string, number>;
}

/** A day file in which the gateway has rows. */
interface GatewayDay {
  readonly connection: SqliteConnection;
  readonly key: number;
  /** Rows that match the selection. */
  readonly count: number;
}

export class CallReader {
  readonly #folder: string;
  readonly #days = new Map<Day, OpenDay>();

  constructor(folder: string) {
    this.#folder = folder;
  }

  list(gateway: GatewayRef, page: CallPageRequest): CallPage {
    const days = this.#gatewayDays(gateway, page);
    const total = days.reduce((sum, day) => sum + day.count, 0);
    const rows =
      page.orderBy === "createdAt"
        ? listByTime(days, page)
        : this.#rowsOf(gateway, sortedIds(days, page, page.offset + page.limit).slice(page.offset));
    return { rows: rows.map((row) => toCallRow(row, gateway)), total };
  }

  /** Ids in an order, for a deletion with a limit. */
  select(gateway: GatewayRef, selection: CallSelection, order: Order, limit: number): string[] {
    return sortedIds(this.#gatewayDays(gateway, selection), { ...selection, ...order }, limit);
  }

  ranges(gateway: GatewayRef, selection: CallSelection): CallRanges {
    const found = this.#gatewayDays(gateway, selection).flatMap(({ connection, key }) =>
      connection.all<Record<string, number | null>>(sql`
        SELECT min(cost) AS min_cost, max(cost) AS max_cost, min(duration_ms) AS min_duration, max(duration_ms) AS max_duration,
          min(tokens_in) AS min_tokens_in, max(tokens_in) AS max_tokens_in, min(tokens_out) AS min_tokens_out,
          max(tokens_out) AS max_tokens_out, min(tokens_in + tokens_out) AS min_tokens, max(tokens_in + tokens_out) AS max_tokens
        FROM call WHERE ${whereSql(key, selection)}`),
    );
    const range = (name: string): Range => {
      const values = (side: string) => found.flatMap((row) => row[`${side}_${name}`] ?? []);
      const [low, high] = [values("min"), values("max")];
      return {
        min: low.length === 0 ? null : Math.min(...low),
        max: high.length === 0 ? null : Math.max(...high),
      };
    };
    return {
      cost: range("cost"),
      duration: range("duration"),
      tokensIn: range("tokens_in"),
      tokensOut: range("tokens_out"),
      tokens: range("tokens"),
    };
  }

  get(gateway: GatewayRef, id: string): CallRow | null {
    const [row] = this.#rowsOf(gateway, [id]);
    return row === undefined ? null : toCallRow(row, gateway);
  }

  body(gateway: GatewayRef, id: string, side: BodySide): StoredBody | null {
    const [row] = this.#rowsOf(gateway, [id]);
    const connection = this.#day(dayOfId(id))?.connection;
    if (row === undefined || connection === undefined) return null;
    const place = row.seq * 2 + (side === "request" ? 0 : 1);
    const body = connection.get<{ is_zstd: number; bytes: Uint8Array }>(
      sql`SELECT is_zstd, bytes FROM body WHERE place = ${place}`,
    );
    if (body === undefined) return null;
    return {
      contentType: side === "request" ? row.request_content_type : row.response_content_type,
      bytes: body.is_zstd === 1 ? zstdDecompressSync(body.bytes) : body.bytes,
      isComplete: (side === "request" ? row.request_body_complete : row.response_body_complete) === 1,
    };
  }

  summarise(query: UsageQuery): UsageFigures[] {
    const sums = new UsageSums();
    for (const day of listDays(this.#folder)) {
      // A call is filed by its id's day and counted in the hour it began, which can lie on the other side of midnight.
      const start = startOfDay(day);
      if (start + 2 * DAY_MS <= query.from || start - DAY_MS >= query.to) continue;
      const connection = this.#day(day)?.connection;
      if (connection !== undefined) sums.add(summariseDay(connection, query));
    }
    return sums.all();
  }

  close(): void {
    for (const { connection } of this.#days.values()) connection.close();
    this.#days.clear();
  }

  #rowsOf(gateway: GatewayRef, ids: readonly string[]): CallColumns[] {
    return ids.flatMap((id) => {
      const connection = this.#day(dayOfId(id))?.connection;
      const found = connection && findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (connection === undefined || found === undefined) return [];
      return connection.all<CallColumns>(sql`SELECT * FROM call WHERE gateway = ${found.key} AND id = ${id}`);
    });
  }

  /** The files that can hold matching rows, oldest first. */
  #gatewayDays(gateway: GatewayRef, selection: CallSelection): GatewayDay[] {
    const { from, to } = timeSpan(selection);
    return listDays(this.#folder).flatMap((day) => {
      const start = startOfDay(day);
      if (start + DAY_MS <= from || start > to) return [];
      const open = this.#day(day);
      if (open === undefined) return [];
      const { connection } = open;
      const found = findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (found === undefined || found.rows === 0) return [];
      const count = isEverything(selection) ? found.rows : countRows(open, found.key, selection);
      return count === 0 ? [] : [{ connection, key: found.key, count }];
    });
  }

  #day(day: Day): OpenDay | undefined {
    const path = dayPath(this.#folder, day);
    const inode = statSync(path, { throwIfNoEntry: false })?.ino;
    const known = this.#days.get(day);
    if (known !== undefined && known.inode === inode) {
      this.#days.delete(day);
      this.#days.set(day, known);
      return known;
    }
    known?.connection.close();
    this.#days.delete(day);
    const connection = inode === undefined ? null : openDayForReading(path);
    if (inode === undefined || connection === null) return undefined;
    const open = { connection, inode, dataVersion: -1, counts: new Map<string, number>() };
    this.#days.set(day, open);
    const [oldest] = this.#days;
    if (this.#days.size > MAX_OPEN_DAYS && oldest !== undefined) {
      oldest[1].connection.close();
      this.#days.delete(oldest[0]);
    }
    return open;
  }
}

export interface Order {
  readonly orderBy: CallOrder;
  readonly direction: "asc" | "desc";
}

function listByTime(days: readonly GatewayDay[], page: CallPageRequest): CallColumns[] {
  const rows: CallColumns[] = [];
  let skip = page.offset;
  for (const { connection, key, count } of page.direction === "asc" ? days : days.toReversed()) {
    if (rows.length >= page.limit) break;
    if (skip >= count) {
      skip -= count;
      continue;
    }
    const direction = page.direction === "asc" ? ASC : DESC;
    rows.push(
      ...connection.all<CallColumns>(sql`SELECT * FROM call WHERE ${whereSql(key, page)}
        ORDER BY id ${direction} LIMIT ${page.limit - rows.length} OFFSET ${skip}`),
    );
    skip = 0;
  }
  return rows;
}

interface Ranked {
  readonly id: string;
  readonly rank: string | number | null;
}

/** The first ids over all files; ties are in order of time, in the same direction. */
function sortedIds(days: readonly GatewayDay[], order: CallSelection & Order, limit: number): string[] {
  const column = ORDER_COLUMNS[order.orderBy];
  const direction = order.direction === "asc" ? ASC : DESC;
  const ranked = days.flatMap(({ connection, key }) =>
    connection.all<Ranked>(sql`SELECT id, ${column} AS rank FROM call WHERE ${whereSql(key, order)}
      ORDER BY ${column} ${direction}, id ${direction} LIMIT ${limit}`),
  );
  const sign = order.direction === "asc" ? 1 : -1;
  return ranked
    .sort((a, b) => sign * (compare(a.rank, b.rank) || compare(a.id, b.id)))
    .slice(0, limit)
    .map((row) => row.id);
}

/** As SQLite orders: null first, then numbers, or texts by their bytes. */
function compare(a: string | number | null, b: string | number | null): number {
  if (a === b) return 0;
  if (a === null) return -1;
  if (b === null) return 1;
  if (typeof a === "string" && typeof b === "string") return Buffer.compare(Buffer.from(a), Buffer.from(b));
  return a < b ? -1 : 1;
}

function countRows(day: OpenDay, key: number, selection: CallSelection): number {
  const version = day.connection.get<{ data_version: number }>(DATA_VERSION)?.data_version ?? -1;
  if (version !== day.dataVersion || day.counts.size > MAX_KEPT_COUNTS) {
    day.counts.clear();
    day.dataVersion = version;
  }
  const question = JSON.stringify([key, selection.filters, selection.search]);
  let count = day.counts.get(question);
  if (count === undefined) {
    count =
      day.connection.get<{ n: number }>(sql`SELECT count(*) AS n FROM call WHERE ${whereSql(key, selection)}`)
        ?.n ?? 0;
    day.counts.set(question, count);
  }
  return count;
}

/** Times outside of which the filters let no row through, with a day to spare where they speak of the call's begin. */
function timeSpan(selection: CallSelection): { from: number; to: number } {
  let from = Number.NEGATIVE_INFINITY;
  let to = Number.POSITIVE_INFINITY;
  for (const { field, operator, values } of selection.filters) {
    if (field !== "id" && field !== "createdAt") continue;
    const slack = field === "id" ? 0 : DAY_MS;
    const times = values.flatMap((value) =>
      typeof value === "number" ? value : value !== null && isUlid(value) ? ulidTime(value) : [],
    );
    // A value that is no time (an id of another form) says nothing about days.
    if (times.length === 0 || times.length < values.length) continue;
    const isLower = operator === "gt" || operator === "gte" || operator === "eq";
    const isUpper = operator === "lt" || operator === "lte" || operator === "eq";
    if (isLower) from = Math.max(from, Math.min(...times) - slack);
    if (isUpper) to = Math.min(to, Math.max(...times) + slack);
  }
  return { from, to };
}
