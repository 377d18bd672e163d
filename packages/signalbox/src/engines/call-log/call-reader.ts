/**
 * Reads calls and usage from the day files. Runs in the reader's thread on connections of its own, so that a slow read delays neither the writer
 * nor the event loop.
 *
 * The files are listed anew for every read, because the writer adds and removes them. A page in the order of time reads rows from the files it
 * needs; the others contribute their count. What a file has given for a filter is kept until the file changes (`KeptReads`).
 */
import { statSync } from "node:fs";
import { zstdDecompressSync } from "node:zlib";
import { rawSql, sql } from "../../core/sql.ts";
import type { SqliteConnection } from "../sqlite-file/index.ts";
import type { BodySide, CallPage, CallRow, GatewayRef, StoredBody } from "./call-log.ts";
import { findGatewayKey, openDayFileForReading, type ReadableDayFile, versionOf } from "./day-file.ts";
import { DAY_MS, type Day, dayOfId, dayPath, listDays, startOfDay } from "./day-files.ts";
import { CALL_SELECT_LIST, VERSION } from "./day-schema.ts";
import { type KeptFile, KeptReads } from "./kept-reads.ts";
import { firstRanked, type Ranked } from "./ranked.ts";
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
/** About 100 bytes each, in each thread. An order of a month takes 8,000 of them. */
const MAX_KEPT_ROWS = 100_000;
/** A filter that has at most so many matches in a file is read once for all pages. */
const MAX_KEPT_MATCHES = 1000;
/** The first rows of an order that are read from a file at once, so that the pages after the first read no file again. The number doubles for later pages. */
const MIN_FIRST = 256;
/** Pages behind so many rows read all files. */
const MAX_FIRST = 16_384;
const ASC = rawSql("ASC");
const DESC = rawSql("DESC");
const ALL_COLUMNS = rawSql(CALL_SELECT_LIST);
const RANGES = rawSql(
  RANGE_FIELDS.flatMap((field) =>
    ["min", "max"].map(
      (side) => `${side}(${SQLITE_SELECTION.field(field).parts.join("")}) AS ${side}_${field}`,
    ),
  ).join(", "),
);

interface OpenDay extends ReadableDayFile, KeptFile {
  /** Differs if the file was replaced by another of the same name. */
  readonly inode: number;
}

/** A day file in which the gateway has rows. */
interface GatewayDay {
  readonly file: OpenDay;
  readonly key: number;
  /** Rows that match the selection. */
  readonly count: number;
}

export class CallReader {
  readonly #folder: string;
  readonly #days = new Map<Day, OpenDay>();
  readonly #kept = new KeptReads(MAX_KEPT_ROWS);
  #opened = 0;
  readonly #files: DayFiles = {
    days: () => this.#listDays(),
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
        ? this.#listByTime(days, page)
        : this.#rowsOf(gateway, this.#sortedIds(days, page, page.offset + page.limit).slice(page.offset));
    return { rows: rows.map((row) => toCallRow(row, gateway)), total };
  }

  /** The first ids in an order, for a deletion with a limit. */
  select(gateway: GatewayRef, selection: CallSelection, order: Order, limit: number): string[] {
    return this.#sortedIds(this.#gatewayDays(gateway, selection), { ...selection, ...order }, limit);
  }

  ranges(gateway: GatewayRef, selection: CallSelection): CallRanges {
    const found = this.#gatewayDays(gateway, selection).flatMap(({ file, key }) =>
      this.#kept.read(file, ["ranges", key, selection.filters, selection.search], () => ({
        value: file.connection.all<Record<string, number | null>>(
          sql`SELECT ${RANGES} FROM call WHERE ${SQLITE_SELECTION.where(key, selection)}`,
        ),
        rows: 1,
      })),
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
    for (const day of this.#listDays()) {
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
      return rowOf(connection, found.key, id);
    });
  }

  /** The files that have matching rows, oldest first. */
  #gatewayDays(gateway: GatewayRef, selection: CallSelection): GatewayDay[] {
    const { from, to } = timeSpan(selection);
    return this.#listDays().flatMap((day) => {
      const start = startOfDay(day);
      if (start + DAY_MS <= from || start > to) return [];
      const file = this.#day(day);
      if (file === undefined) return [];
      const found = findGatewayKey(file.connection, gateway.accountId, gateway.gatewayId);
      if (found === undefined || found.rows === 0) return [];
      const { key, rows } = found;
      const count = isEverything(selection) ? rows : this.#count(file, key, selection);
      return count === 0 ? [] : [{ file, key, count }];
    });
  }

  #count(file: OpenDay, key: number, selection: CallSelection): number {
    return this.#kept.read(file, ["count", key, selection.filters, selection.search], () => ({
      value:
        file.connection.get<{ n: number }>(
          sql`SELECT count(*) AS n FROM call WHERE ${SQLITE_SELECTION.where(key, selection)}`,
        )?.n ?? 0,
      rows: 0,
    }));
  }

  /** The ids of the matches, which are few, oldest first. */
  #matches(file: OpenDay, key: number, selection: CallSelection): readonly string[] {
    return this.#kept.read(file, ["matches", key, selection.filters, selection.search], () => {
      const found = file.connection.all<{ id: string }>(
        sql`SELECT id FROM call WHERE ${SQLITE_SELECTION.where(key, selection)} ORDER BY id`,
      );
      return { value: found.map(({ id }) => id), rows: found.length };
    });
  }

  #listByTime(days: readonly GatewayDay[], page: CallPageRequest): StoredRow[] {
    const rows: StoredRow[] = [];
    let skip = page.offset;
    const isUp = page.direction === "asc";
    for (const { file, key, count } of isUp ? days : days.toReversed()) {
      if (rows.length >= page.limit) break;
      if (skip >= count) {
        skip -= count;
        continue;
      }
      const missing = page.limit - rows.length;
      if (count > MAX_KEPT_MATCHES || isEverything(page)) {
        const direction = isUp ? ASC : DESC;
        rows.push(
          ...file.connection
            .all<StoredRow>(sql`SELECT ${ALL_COLUMNS} FROM call WHERE ${SQLITE_SELECTION.where(key, page)}
            ORDER BY id ${direction} LIMIT ${missing} OFFSET ${skip}`),
        );
      } else {
        const ids = this.#matches(file, key, page);
        const wanted = (isUp ? ids : ids.toReversed()).slice(skip, skip + missing);
        rows.push(...wanted.flatMap((id) => rowOf(file.connection, key, id)));
      }
      skip = 0;
    }
    return rows;
  }

  /** The first ids of all files; ids break ties, in the same direction. */
  #sortedIds(days: readonly GatewayDay[], order: CallSelection & Order, limit: number): string[] {
    const ranked = days.flatMap(({ file, key }) => this.#first(file, key, order, limit));
    return firstRanked(ranked, order.direction, limit).map(({ id }) => id);
  }

  /** The first rows of a file in an order. */
  #first(file: OpenDay, key: number, order: CallSelection & Order, limit: number): readonly Ranked[] {
    const { filters, search, orderBy, direction: side } = order;
    const isKept = limit <= MAX_FIRST;
    const readLimit = isKept ? Math.max(MIN_FIRST, 2 ** Math.ceil(Math.log2(limit))) : limit;
    const column = ORDER_SQL[orderBy];
    const direction = side === "asc" ? ASC : DESC;
    const first = this.#kept.read(
      file,
      ["first", key, filters, search, orderBy, side],
      () => {
        const rows = file.connection.all<Ranked>(
          sql`SELECT id, ${column} AS rank FROM call WHERE ${SQLITE_SELECTION.where(key, order)}
            ORDER BY ${column} ${direction}, id ${direction} LIMIT ${readLimit}`,
        );
        return { value: { rows, isAll: rows.length < readLimit }, rows: isKept ? rows.length : null };
      },
      (known) => known.isAll || known.rows.length >= limit,
    );
    return first.rows.slice(0, limit);
  }

  /** Also closes the files of days that were removed, whose space would else be in use until this thread ends. */
  #listDays(): Day[] {
    const days = listDays(this.#folder);
    for (const [day, file] of this.#days) if (!days.includes(day)) this.#close(day, file);
    return days;
  }

  #close(day: Day, file: OpenDay): void {
    this.#days.delete(day);
    this.#kept.forget(file);
    file.connection.close();
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
    if (known !== undefined) this.#close(day, known);
    const file = inode === undefined ? null : openDayFileForReading(path);
    if (inode === undefined || file === null) return undefined;
    this.#opened += 1;
    const open = { ...file, inode, number: this.#opened };
    this.#days.set(day, open);
    const [oldest] = this.#days;
    if (this.#days.size > MAX_OPEN_DAYS && oldest !== undefined) this.#close(...oldest);
    return open;
  }
}

/** A connection that was opened on a file of an earlier version does not see the columns that a migration has added since. */
function wasMigrated({ connection, version }: OpenDay): boolean {
  return version < VERSION && versionOf(connection) !== version;
}

/** The row, if it is there. */
function rowOf(connection: SqliteConnection, key: number, id: string): StoredRow[] {
  return connection.all<StoredRow>(
    sql`SELECT ${ALL_COLUMNS} FROM call WHERE gateway = ${key} AND id = ${id}`,
  );
}
