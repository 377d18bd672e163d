/**
 * Lists with a filter, a search or an order, and ranges: from one day after the other. A day that is over rarely changes, so what it has given is kept, and
 * the next page reads today only.
 *
 * Invariants:
 * 1. A statement reads the calls of one gateway on one day, or a page of rows by their ids.
 * 2. What is kept of a day is used only while its row in `call_log_count` is the same version (`xmin`), which is read before the calls. Every change of the calls
 *    of a gateway on a day writes that row in its transaction.
 * 3. Another server may use the versions again: `forget` is called when the server is another one.
 */
import { readAhead } from "../../../core/read-ahead.ts";
import { joinSql, rawSql, sql, type SqlQuery } from "../../../core/sql.ts";
import type { Queryable } from "../../../core/queryable.ts";
import type { CallPage, GatewayRef } from "../call-log.ts";
import { CALL_COLUMNS, listColumns } from "../columns.ts";
import { DAY_MS } from "../day-files.ts";
import { KeptValues } from "../kept-values.ts";
import { firstRanked, type Ranked } from "../ranked.ts";
import {
  type CallPageRequest,
  type CallRanges,
  type CallSelection,
  type Order,
  type Range,
  RANGE_FIELDS,
} from "../selection.ts";
import { isEverything, ORDER_SQL, requiresValue } from "../selection-sql.ts";
import { timeSpan } from "../selection-span.ts";
import { type StoredRow, toCallRow } from "../stored-row.ts";
import { keySql, orderSql } from "./call-queries.ts";
import { type DayStart, dayStartOf, idsOf, startOfDayAt } from "./days.ts";
import { POSTGRES_SELECTION } from "./postgres-selection.ts";

/** A list must not take the connections that others need. */
const DAYS_AT_ONCE = 2;
/** About 100 bytes each. An order of a month takes 8,000 of them. */
const MAX_KEPT_ROWS = 100_000;
/** A filter that has at most so many matches on a day is read once for all pages. */
const MAX_KEPT_MATCHES = 1000;
/** The first rows of an order that are read of a day at once, so that the pages after the first read no day again. The number doubles for later pages. */
const MIN_FIRST = 256;
/** Pages behind so many rows read all days. */
const MAX_FIRST = 16_384;

const ALL_COLUMNS = rawSql(
  listColumns(CALL_COLUMNS)
    .map(({ sqlName }) => sqlName)
    .join(", "),
);
const RANGES = rawSql(
  RANGE_FIELDS.flatMap((field) =>
    ["min", "max"].map(
      (side) => `${side}(${POSTGRES_SELECTION.field(field).parts.join("")})::float8 AS "${side}_${field}"`,
    ),
  ).join(", "),
);

/** A day on which the gateway has calls. */
interface GatewayDay {
  readonly key: number;
  readonly day: DayStart;
  readonly rows: number;
  readonly version: string;
}

/** The calls of a day that match: their ids if they are few. */
interface Matches {
  readonly count: number;
  readonly ids: readonly string[] | null;
}

interface First {
  readonly rows: readonly Ranked[];
  readonly isAll: boolean;
}

export class DayReads {
  readonly #database: Queryable;
  #kept = new KeptValues(MAX_KEPT_ROWS);

  constructor(database: Queryable) {
    this.#database = database;
  }

  async list(gateway: GatewayRef, page: CallPageRequest): Promise<CallPage> {
    const found: { day: GatewayDay; matches: Matches }[] = [];
    const days = await this.#days(gateway, page);
    const read = async (day: GatewayDay) => ({ day, matches: await this.#matches(day, page) });
    for await (const one of readAhead(days, DAYS_AT_ONCE, read)) if (one.matches.count > 0) found.push(one);
    const ids =
      page.orderBy === "createdAt" ? await this.#idsByTime(found, page) : await this.#idsByRank(found, page);
    const rows = await this.#rows(found[0]?.day.key ?? -1, ids);
    const total = found.reduce((sum, { matches }) => sum + matches.count, 0);
    return { rows: rows.map((row) => toCallRow(row, gateway)), total };
  }

  async ranges(gateway: GatewayRef, selection: CallSelection): Promise<CallRanges> {
    const found: Readonly<Record<string, number | null>>[] = [];
    const query = ["ranges", selection.filters, selection.search];
    const read = (day: GatewayDay) =>
      this.#read(day, query, async () => ({
        value:
          (await this.#database.get<Record<string, number | null>>(
            sql`SELECT ${RANGES} FROM call_log WHERE ${conditionOf(day, selection)}`,
          )) ?? {},
        rows: 1,
      }));
    const days = await this.#days(gateway, selection);
    for await (const row of readAhead(days, DAYS_AT_ONCE, read)) found.push(row);
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

  forget(): void {
    // Reads that are running keep their values in the former one.
    this.#kept = new KeptValues(MAX_KEPT_ROWS);
  }

  /** The days that may have matching calls, newest first. */
  async #days(gateway: GatewayRef, selection: CallSelection): Promise<GatewayDay[]> {
    const { from, to } = timeSpan(selection);
    const days = await this.#database.all<GatewayDay>(
      sql`SELECT gateway AS key, day, rows, xmin::text AS version FROM call_log_count WHERE gateway = ${keySql(gateway)} AND rows > 0`,
    );
    return days
      .filter(({ day }) => day + DAY_MS > startOfDayAt(from) && day <= startOfDayAt(to))
      .sort((a, b) => b.day - a.day);
  }

  #matches(day: GatewayDay, selection: CallSelection): Matches | Promise<Matches> {
    if (isEverything(selection)) return { count: day.rows, ids: null };
    return this.#read<Matches>(day, ["matches", selection.filters, selection.search], async () => {
      const where = conditionOf(day, selection);
      const found = await this.#database.all<{ id: string }>(
        sql`SELECT id FROM call_log WHERE ${where} ORDER BY id DESC LIMIT ${MAX_KEPT_MATCHES + 1}`,
      );
      if (found.length <= MAX_KEPT_MATCHES) {
        const ids = found.map(({ id }) => id);
        return { value: { count: ids.length, ids }, rows: ids.length };
      }
      const others = await this.#database.get<{ n: number }>(
        sql`SELECT count(*)::float8 AS n FROM call_log WHERE ${where} AND id < ${found.at(-1)?.id ?? ""}`,
      );
      return { value: { count: found.length + (others?.n ?? 0), ids: null }, rows: 0 };
    });
  }

  async #idsByTime(
    found: readonly { readonly day: GatewayDay; readonly matches: Matches }[],
    page: CallPageRequest,
  ): Promise<string[]> {
    const ids: string[] = [];
    const isDown = page.direction === "desc";
    let skip = page.offset;
    for (const { day, matches } of isDown ? found : found.toReversed()) {
      if (ids.length >= page.limit) break;
      if (skip >= matches.count) {
        skip -= matches.count;
        continue;
      }
      const missing = page.limit - ids.length;
      if (matches.ids !== null) {
        ids.push(...(isDown ? matches.ids : matches.ids.toReversed()).slice(skip, skip + missing));
      } else {
        const rows = await this.#database.all<{ id: string }>(
          sql`SELECT id FROM call_log WHERE ${conditionOf(day, page)} ${orderSql(page)} LIMIT ${missing} OFFSET ${skip}`,
        );
        ids.push(...rows.map(({ id }) => id));
      }
      skip = 0;
    }
    return ids;
  }

  async #idsByRank(found: readonly { readonly day: GatewayDay }[], page: CallPageRequest): Promise<string[]> {
    const ranked: Ranked[] = [];
    const limit = page.offset + page.limit;
    const read = ({ day }: { readonly day: GatewayDay }) => this.#first(day, page, limit);
    for await (const rows of readAhead(found, DAYS_AT_ONCE, read)) ranked.push(...rows);
    return firstRanked(ranked, page.direction, limit)
      .slice(page.offset)
      .map(({ id }) => id);
  }

  /** The first calls of a day in an order. */
  async #first(day: GatewayDay, page: CallSelection & Order, limit: number): Promise<readonly Ranked[]> {
    const { filters, search, orderBy, direction } = page;
    const isKept = limit <= MAX_FIRST;
    const readLimit = isKept ? Math.max(MIN_FIRST, 2 ** Math.ceil(Math.log2(limit))) : limit;
    const first = await this.#read<First>(
      day,
      ["first", filters, search, orderBy, direction],
      async () => {
        const rows = await this.#database.all<Ranked>(
          sql`SELECT id, ${ORDER_SQL[orderBy]} AS rank FROM call_log WHERE ${conditionOf(day, page)} ${orderSql(page)}
              LIMIT ${readLimit}`,
        );
        return { value: { rows, isAll: rows.length < readLimit }, rows: isKept ? rows.length : null };
      },
      (known) => known.isAll || known.rows.length >= limit,
    );
    return first.rows.slice(0, limit);
  }

  /** The rows with these ids, in their order; those that were deleted meanwhile are missing. */
  async #rows(key: number, ids: readonly string[]): Promise<StoredRow[]> {
    if (ids.length === 0) return [];
    const days = ids.map(dayStartOf);
    const [first] = idsOf(Math.min(...days));
    const [, end] = idsOf(Math.max(...days));
    // One value: ids contain no comma.
    const rows = await this.#database.all<StoredRow & { readonly id: string }>(
      sql`SELECT ${ALL_COLUMNS} FROM call_log WHERE gateway = ${key} AND id >= ${first} AND id < ${end}
          AND id = ANY (string_to_array(${ids.join(",")}, ','))`,
    );
    const byId = new Map(rows.map((row) => [row.id, row]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  async #read<T>(
    { key, day, version }: GatewayDay,
    query: readonly unknown[],
    read: () => Promise<{ readonly value: T; readonly rows: number | null }>,
    isEnough?: (value: T) => boolean,
  ): Promise<T> {
    const kept = this.#kept;
    const name = `${key} ${day} ${JSON.stringify(query)}`;
    const known = kept.find(name, version, isEnough);
    if (known !== undefined) return known;
    const { value, rows } = await read();
    if (rows !== null) kept.keep(name, version, value, rows);
    return value;
  }
}

/** The calls of a gateway on a day that match. */
function conditionOf({ key, day }: GatewayDay, selection: CallSelection): SqlQuery {
  const [first, end] = idsOf(day);
  const conditions = [POSTGRES_SELECTION.where(key, selection), sql`id >= ${first} AND id < ${end}`];
  // As the partial indexes of a partition have them; the filter compares numbers with a fraction.
  if (requiresValue(selection, "success", 0)) conditions.push(rawSql("success = 0"));
  if (requiresValue(selection, "cached", 1)) conditions.push(rawSql("cached = 1"));
  return joinSql(conditions, " AND ");
}
