/**
 * Finds events by filters: for lists, and for bulk replays. No index helps most filters, and a part of the body is searched in the bodies, which may be
 * gigabytes.
 *
 * Invariants:
 * 1. Every read is a scan, outside of the event loop (decision 0316).
 * 2. A statement looks at `LOOKED_AT` events at most, whether they match or not. Between two of them other accounts have their turn, and a search whose
 *    caller has left ends.
 * 3. A list looks for `MAX_SEARCH_MS`; then it returns what it has found with the place where the next request goes on.
 * Filters that name a delivery, a bulk replay or an issue have indexes: their events are read with one statement (`sourceOf`).
 */
import { joinSql, sql, type SqlQuery } from "../../core/sql.ts";
import type { Database, ScanTurn } from "../../database/database.ts";
import type { EventState, RoutedEvent } from "./event-record.ts";
import { type EventRow, fromEventRow } from "./event-table.ts";
import type { RouteId } from "./route.ts";

export interface EventQuery {
  readonly source?: string | undefined;
  readonly route?: string | undefined;
  readonly state?: EventState | undefined;
  readonly delivery?: string | undefined;
  readonly type?: string | undefined;
  readonly entity?: string | undefined;
  readonly replay?: string | undefined;
  readonly issue?: string | undefined;
  /** A part of the body. */
  readonly text?: string | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** What the states of waiting events depend on. */
export interface StateContext {
  readonly now: number;
  readonly paused: readonly RouteId[];
}

export interface EventCount {
  readonly source: string;
  readonly route: string;
  readonly count: number;
  readonly oldest: number;
  readonly newest: number;
  readonly last: string;
}

export interface FoundEvents {
  readonly events: readonly RoutedEvent[];
  /** The next page continues before this id; null if there is nothing more. */
  readonly next: string | null;
  /** Events that were looked at, those that match included; null if an index has found them. */
  readonly scanned: number | null;
}

export interface MatchingIds {
  readonly ids: readonly string[];
  /** Up to here everything was looked at. */
  readonly position: string;
  readonly isDone: boolean;
}

/** Some milliseconds, also if their rows are not in memory. */
const LOOKED_AT = 2000;
/** With their bodies. */
const LOOKED_AT_WITH_BODIES = 200;
const MAX_SEARCH_MS = 3000;

export class EventSearch {
  readonly #database: Database;
  readonly #lookedAt: number;
  readonly #maxSearchMs: number;

  /** The limits are set by tests only. */
  constructor(
    database: Database,
    { lookedAt = LOOKED_AT, maxSearchMs = MAX_SEARCH_MS }: { lookedAt?: number; maxSearchMs?: number } = {},
  ) {
    this.#database = database;
    this.#lookedAt = lookedAt;
    this.#maxSearchMs = maxSearchMs;
  }

  /** Newest first, before `cursor`. */
  async list(
    accountId: string,
    query: EventQuery,
    context: StateContext,
    { cursor, limit, signal }: { cursor?: string | undefined; limit: number; signal?: AbortSignal },
  ): Promise<FoundEvents> {
    const where = joinSql(this.#conditions(accountId, query, context), " AND ");
    const turn = turnOf(accountId, query);
    const events = sourceOf(query);
    const read = (range: SqlQuery, count: number) =>
      this.#database.scan<EventRow>(
        sql`${events.with} SELECT e.* FROM ${events.from} WHERE ${where} ${range} ORDER BY e.id DESC LIMIT ${count}`,
        turn,
      );
    const found: EventRow[] = [];
    const endsAt = performance.now() + this.#maxSearchMs;
    const isWalk = turn.kind === "search" && !events.isIndexed;
    let scanned = 0;
    for (let before = cursor; ;) {
      const below = before === undefined ? sql`` : sql`AND e.id < ${before}`;
      const step = isWalk ? await this.#step(accountId, turn, below, this.#stepOf(query)) : null;
      const range = step === null ? below : sql`${below} AND e.id >= ${step.last}`;
      found.push(...(await read(range, limit + 1 - found.length)));
      scanned += step?.count ?? 0;
      const isFull = found.length > limit;
      if (isFull || step === null || step.isLast)
        return pageOf(
          found.slice(0, limit),
          isFull ? (found[limit - 1]?.id ?? null) : null,
          isWalk ? scanned : null,
        );
      before = step.last;
      if (performance.now() >= endsAt || signal?.aborted === true) return pageOf(found, before, scanned);
    }
  }

  /** What a bulk replay would touch, by route. */
  async count(
    accountId: string,
    query: EventQuery,
    context: StateContext,
    signal?: AbortSignal,
  ): Promise<EventCount[]> {
    const where = joinSql(this.#conditions(accountId, query, context), " AND ");
    const turn = turnOf(accountId, query);
    const events = sourceOf(query);
    const sums = new Map<string, EventCount>();
    for (let before = sql``; ;) {
      signal?.throwIfAborted();
      const step = events.isIndexed ? null : await this.#step(accountId, turn, before, this.#stepOf(query));
      const range = step === null ? sql`` : sql`${before} AND e.id >= ${step.last}`;
      const counts = await this.#database.scan<EventCount>(
        sql`${events.with} SELECT e.source, e.route, count(*) AS count, min(e.received_at) AS oldest, max(e.received_at) AS newest,
              max(e.id) AS last FROM ${events.from} WHERE ${where} ${range} GROUP BY e.source, e.route`,
        turn,
      );
      for (const count of counts) addTo(sums, count);
      if (step === null || step.isLast) break;
      before = sql`AND e.id < ${step.last}`;
    }
    return [...sums.values()].sort((a, b) => compare(a.source, b.source) || compare(a.route, b.route));
  }

  /** The next matching events, oldest first, after `after` and up to `upto`: at most `limit` of those that one statement looks at. */
  async next(
    accountId: string,
    query: EventQuery,
    context: StateContext,
    { after, upto, limit }: { after: string; upto: string; limit: number },
  ): Promise<MatchingIds> {
    const turn = turnOf(accountId, query);
    const [end] = await this.#database.scan<{ id: string }>(
      sql`SELECT id FROM webhook_event WHERE account_id = ${accountId} AND id > ${after} AND id <= ${upto}
          ORDER BY id LIMIT 1 OFFSET ${this.#stepOf(query) - 1}`,
      turn,
    );
    const last = end?.id ?? upto;
    const rows = await this.#database.scan<{ id: string }>(
      sql`SELECT e.id FROM webhook_event e WHERE ${joinSql(this.#conditions(accountId, query, context), " AND ")}
            AND e.id > ${after} AND e.id <= ${last} ORDER BY e.id LIMIT ${limit}`,
      turn,
    );
    const ids = rows.map(({ id }) => id);
    const isFull = ids.length === limit;
    return { ids, position: isFull ? (ids.at(-1) ?? last) : last, isDone: !isFull && end === undefined };
  }

  /** The condition that an event still matches; `e` is its table. */
  condition(accountId: string, query: EventQuery, context: StateContext): SqlQuery {
    return joinSql(this.#conditions(accountId, query, context), " AND ");
  }

  /** The last id of the next events that are looked at, newest first. */
  async #step(
    accountId: string,
    turn: ScanTurn,
    below: SqlQuery,
    count: number,
  ): Promise<{ last: string; count: number; isLast: boolean }> {
    const [row] = await this.#database.scan<{ last: string | null; count: number }>(
      sql`SELECT min(id) AS last, count(*) AS count FROM
            (SELECT e.id FROM webhook_event e WHERE e.account_id = ${accountId} ${below} ORDER BY e.id DESC LIMIT ${count}) AS looked_at`,
      turn,
    );
    return { last: row?.last ?? "", count: row?.count ?? 0, isLast: (row?.count ?? 0) < count };
  }

  #stepOf({ text }: EventQuery): number {
    return text === undefined ? this.#lookedAt : Math.min(this.#lookedAt, LOOKED_AT_WITH_BODIES);
  }

  #conditions(accountId: string, query: EventQuery, context: StateContext): SqlQuery[] {
    const where = [sql`e.account_id = ${accountId}`];
    if (query.source !== undefined) where.push(sql`e.source = ${query.source}`);
    if (query.route !== undefined) where.push(sql`e.route = ${query.route}`);
    if (query.type !== undefined) where.push(sql`e.type = ${query.type}`);
    if (query.entity !== undefined) where.push(sql`e.entity = ${query.entity}`);
    if (query.replay !== undefined) where.push(sql`e.replay = ${query.replay}`);
    if (query.issue !== undefined) where.push(sql`e.issue = ${query.issue}`);
    if (query.since !== undefined) where.push(sql`e.received_at >= ${query.since}`);
    if (query.until !== undefined) where.push(sql`e.received_at < ${query.until}`);
    if (query.delivery !== undefined) where.push(sql`e.${ofDelivery(query.delivery)}`);
    if (query.text !== undefined) {
      const bytes = Buffer.from(query.text);
      const contains =
        this.#database.engine === "sqlite"
          ? sql`instr(d.body, ${bytes}) > 0`
          : sql`position(${bytes} IN d.body) > 0`;
      where.push(
        sql`EXISTS (SELECT 1 FROM webhook_stored_delivery d WHERE d.id = e.delivery AND ${contains})`,
      );
    }
    if (query.state !== undefined) where.push(stateCondition(query.state, context));
    return where;
  }
}

/**
 * The events of a delivery, a bulk replay or an issue by their index. SQLite, which has no statistics, would read all events of the account in their order
 * instead; a materialised part is planned by itself. A search in bodies walks in any case: there may be many events of an issue.
 */
function sourceOf({ delivery, replay, issue, text }: EventQuery): {
  readonly with: SqlQuery;
  readonly from: SqlQuery;
  readonly isIndexed: boolean;
} {
  const by =
    delivery === undefined
      ? replay === undefined
        ? issue === undefined
          ? null
          : sql`issue = ${issue}`
        : sql`replay = ${replay}`
      : ofDelivery(delivery);
  if (by === null || text !== undefined) return { with: sql``, from: sql`webhook_event e`, isIndexed: false };
  return {
    with: sql`WITH e AS MATERIALIZED (SELECT * FROM webhook_event WHERE ${by})`,
    from: sql`e`,
    isIndexed: true,
  };
}

/** A list of objects is stored as a delivery for each of them. */
function ofDelivery(id: string): SqlQuery {
  return sql`delivery IN (SELECT id FROM webhook_stored_delivery WHERE id = ${id} UNION SELECT id FROM webhook_stored_delivery WHERE batch = ${id})`;
}

/** Without filters a list reads what it shows. */
function turnOf(account: string, query: EventQuery): ScanTurn {
  return { account, kind: Object.values(query).every((value) => value === undefined) ? "page" : "search" };
}

function pageOf(rows: readonly EventRow[], next: string | null, scanned: number | null): FoundEvents {
  return { events: rows.map(fromEventRow), next, scanned };
}

function addTo(sums: Map<string, EventCount>, more: EventCount): void {
  const key = JSON.stringify([more.source, more.route]);
  const sum = sums.get(key);
  sums.set(
    key,
    sum === undefined
      ? more
      : {
          ...sum,
          count: sum.count + more.count,
          oldest: Math.min(sum.oldest, more.oldest),
          newest: Math.max(sum.newest, more.newest),
          last: compare(sum.last, more.last) < 0 ? more.last : sum.last,
        },
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function stateCondition(state: EventState, { now, paused }: StateContext): SqlQuery {
  const isPaused =
    paused.length === 0
      ? sql`1 = 0`
      : sql`(${joinSql(
          paused.map(
            ({ accountId, source, name }) =>
              sql`(e.account_id = ${accountId} AND e.source = ${source} AND e.route = ${name})`,
          ),
          " OR ",
        )})`;
  switch (state) {
    case "held":
      return sql`e.due_at IS NOT NULL AND e.node IS NULL AND ${isPaused}`;
    case "scheduled":
      return sql`e.due_at > ${now} AND e.node IS NULL AND NOT ${isPaused}`;
    case "queued":
      return sql`(e.node IS NOT NULL OR (e.due_at <= ${now} AND NOT ${isPaused})) AND e.due_at IS NOT NULL`;
    default:
      return sql`e.state = ${state}`;
  }
}
