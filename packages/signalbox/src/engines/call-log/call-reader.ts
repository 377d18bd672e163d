/**
 * Reads calls and usage from the day files. Runs in the reader's thread on connections of its own, so that a slow read delays neither the writer
 * nor the event loop.
 *
 * The files are listed anew for every read, because the writer adds and removes them. A page in the order of time reads rows from the files it
 * needs; the others contribute their count, which is cached until the file changes.
 */
import { statSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { BodySide, CallPage, CallRow, GatewayRef, StoredBody } from "./call-log.ts";
import { findGatewayKey, openDayFileForReading, type ReadableDayFile, versionOf } from "./day-file.ts";
import { DAY_MS, type Day, dayOfId, dayPath, listDays, startOfDay } from "./day-files.ts";
import { CALL_SELECT_LIST, VERSION } from "./day-schema.ts";
import { isEverything, ORDER_SQL } from "./selection-sql.ts";
import {
  type CallPageRequest,
  type CallRanges,
  type CallSelection,
  type Order,
  type Range,
  RANGE_FIELDS,
} from "./selection.ts";
import { timeSpan } from "./selection-span.ts";
import { type StoredRow, toCallRow } from "./stored-row.ts";
import { SQLITE_SELECTION } from "./sqlite-selection.ts";
import { summariseDay, UsageTotals } from "./summarise-usage.ts";
import type { CallNeighbours, CallScan, CallSlice, StoredCalls } from "./call-scan.ts";
import { type DayFiles, neighboursOf, scanFiles, storedAfter } from "./scan-files.ts";
import { summarisePart } from "./summarise-rows.ts";
import { summariseTotals } from "./summarise-totals.ts";
import type { UsageFigures, UsageQuery } from "./usage.ts";
import type { UsageBy, UsageByPart, UsageByQuery } from "./usage-by.ts";

/** A month stays open; older days are opened for a read. */
const MAX_OPEN_DAYS = 32;
const MAX_KEPT_COUNTS = 500;
const ASC = rawSql("ASC");
const DESC = rawSql("DESC");
const DATA_VERSION = rawSql("PRAGMA data_version");
const ALL_COLUMNS = rawSql(CALL_SELECT_LIST);
const RANGES = rawSql(
  RANGE_FIELDS.flatMap((field) =>
    ["min", "max"].map(
      (side) => `${side}(${SQLITE_SELECTION.field(field).parts.join("")}) AS ${side}_${field}`,
    ),
  ).join(", "),
);

interface OpenDay extends ReadableDayFile {
  /** Differs if the file was replaced by another of the same name. */
  readonly inode: number;
  /** SQLite changes the number when another connection has committed. */
  dataVersion: number;
  /** Number of matching rows by gateway and selection, valid for `dataVersion`. */
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
  readonly #files: DayFiles = {
    days: () => listDays(this.#folder),
    open: (day) => this.#day(day)?.connection,
  };

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

  /** The first ids in an order, for a deletion with a limit. */
  select(gateway: GatewayRef, selection: CallSelection, order: Order, limit: number): string[] {
    return sortedIds(this.#gatewayDays(gateway, selection), { ...selection, ...order }, limit);
  }

  ranges(gateway: GatewayRef, selection: CallSelection): CallRanges {
    const found = this.#gatewayDays(gateway, selection).flatMap(({ connection, key }) =>
      connection.all<Record<string, number | null>>(
        sql`SELECT ${RANGES} FROM call WHERE ${SQLITE_SELECTION.where(key, selection)}`,
      ),
    );
    const range = (field: string): Range => {
      const values = (side: string) => found.flatMap((row) => row[`${side}_${field}`] ?? []);
      const [low, high] = [values("min"), values("max")];
      return {
        min: low.length === 0 ? null : Math.min(...low),
        max: high.length === 0 ? null : Math.max(...high),
      };
    };
    return Object.fromEntries(RANGE_FIELDS.map((field) => [field, range(field)])) as CallRanges;
  }

  get(gateway: GatewayRef, id: string): CallRow | null {
    const [row] = this.#rowsOf(gateway, [id]);
    return row === undefined ? null : toCallRow(row, gateway);
  }

  body(gateway: GatewayRef, id: string, side: BodySide): StoredBody | null {
    const [stored] = this.#rowsOf(gateway, [id]);
    const connection = this.#day(dayOfId(id))?.connection;
    if (stored === undefined || connection === undefined) return null;
    const row = toCallRow(stored, gateway);
    const place = stored.seq * 2 + (side === "request" ? 0 : 1);
    const body = connection.get<{ is_zstd: number; bytes: Uint8Array }>(
      sql`SELECT is_zstd, bytes FROM body WHERE place = ${place}`,
    );
    if (body === undefined) return null;
    return {
      contentType: side === "request" ? row.requestContentType : row.responseContentType,
      bytes: body.is_zstd === 1 ? zstdDecompressSync(body.bytes) : body.bytes,
      isComplete: side === "request" ? row.requestBodyComplete : row.responseBodyComplete,
    };
  }

  summarise(query: UsageQuery): UsageFigures[] {
    const totals = new UsageTotals();
    for (const day of listDays(this.#folder)) {
      // The id decides the file and `createdAt` the hour of a call; midnight can lie between the two.
      const start = startOfDay(day);
      if (start + 2 * DAY_MS <= query.from || start - DAY_MS >= query.to) continue;
      const connection = this.#day(day)?.connection;
      if (connection === undefined) continue;
      totals.add(summariseDay(connection, query));
    }
    return totals.all();
  }

  /** Null if the rows have to be read. */
  summariseTotals(query: UsageByQuery): UsageBy | null {
    return summariseTotals(this.#files, query);
  }

  /** One part of a query, newest calls first. */
  summariseBy(query: UsageByQuery, cursor: string | null): UsageByPart {
    return summarisePart(this.#files, query, cursor);
  }

  scan(scan: CallScan): CallSlice {
    return scanFiles(this.#files, scan);
  }

  storedAfter(position: string | null, limit: number): StoredCalls {
    return storedAfter(this.#files, position, limit);
  }

  neighbours(gateway: GatewayRef, id: string): CallNeighbours {
    return neighboursOf(this.#files, gateway, id);
  }

  close(): void {
    for (const { connection } of this.#days.values()) connection.close();
    this.#days.clear();
  }

  #rowsOf(gateway: GatewayRef, ids: readonly string[]): StoredRow[] {
    return ids.flatMap((id) => {
      const connection = this.#day(dayOfId(id))?.connection;
      const found = connection && findGatewayKey(connection, gateway.accountId, gateway.gatewayId);
      if (connection === undefined || found === undefined) return [];
      return connection.all<StoredRow>(
        sql`SELECT ${ALL_COLUMNS} FROM call WHERE gateway = ${found.key} AND id = ${id}`,
      );
    });
  }

  /** The files that have matching rows, oldest first. */
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
    if (known !== undefined && known.inode === inode && !wasMigrated(known)) {
      this.#days.delete(day);
      this.#days.set(day, known);
      return known;
    }
    known?.connection.close();
    this.#days.delete(day);
    const file = inode === undefined ? null : openDayFileForReading(path);
    if (inode === undefined || file === null) return undefined;
    const open = { ...file, inode, dataVersion: -1, counts: new Map<string, number>() };
    this.#days.set(day, open);
    const [oldest] = this.#days;
    if (this.#days.size > MAX_OPEN_DAYS && oldest !== undefined) {
      oldest[1].connection.close();
      this.#days.delete(oldest[0]);
    }
    return open;
  }
}

/** A connection that was opened on a file of an earlier version does not see the columns that a migration has added since. */
function wasMigrated({ connection, version }: OpenDay): boolean {
  return version < VERSION && versionOf(connection) !== version;
}

function listByTime(days: readonly GatewayDay[], page: CallPageRequest): StoredRow[] {
  const rows: StoredRow[] = [];
  let skip = page.offset;
  for (const { connection, key, count } of page.direction === "asc" ? days : days.toReversed()) {
    if (rows.length >= page.limit) break;
    if (skip >= count) {
      skip -= count;
      continue;
    }
    const direction = page.direction === "asc" ? ASC : DESC;
    rows.push(
      ...connection.all<StoredRow>(sql`SELECT ${ALL_COLUMNS} FROM call WHERE ${SQLITE_SELECTION.where(key, page)}
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

/** The first ids of all files; ids break ties, in the same direction. */
function sortedIds(days: readonly GatewayDay[], order: CallSelection & Order, limit: number): string[] {
  const column = ORDER_SQL[order.orderBy];
  const direction = order.direction === "asc" ? ASC : DESC;
  const ranked = days.flatMap(({ connection, key }) =>
    connection.all<Ranked>(sql`SELECT id, ${column} AS rank FROM call WHERE ${SQLITE_SELECTION.where(key, order)}
      ORDER BY ${column} ${direction}, id ${direction} LIMIT ${limit}`),
  );
  const sign = order.direction === "asc" ? 1 : -1;
  return ranked
    .sort((a, b) => sign * (compare(a.rank, b.rank) || compare(a.id, b.id)))
    .slice(0, limit)
    .map((row) => row.id);
}

/** The order of SQLite: null first, then numbers, or texts by their bytes. */
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
  const query = JSON.stringify([key, selection.filters, selection.search]);
  let count = day.counts.get(query);
  if (count === undefined) {
    count =
      day.connection.get<{ n: number }>(
        sql`SELECT count(*) AS n FROM call WHERE ${SQLITE_SELECTION.where(key, selection)}`,
      )?.n ?? 0;
    day.counts.set(query, count);
  }
  return count;
}
