/**
 * Reads the audit log in steps, each of which is a scan that looks at a bounded number of rows: other accounts have their turn between two steps
 * (decision 0510).
 */
import type { Database, ScanTurn } from "../database/database.ts";
import { joinSql, sql, type SqlQuery } from "../core/sql.ts";

export interface AuditFilter {
  /** Milliseconds, inclusive. */
  readonly since?: number | undefined;
  /** Milliseconds, exclusive. */
  readonly before?: number | undefined;
  /** Id of a token, `root`, `anonymous` or `system`. */
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly outcome?: string | undefined;
  readonly resourceType?: string | undefined;
  readonly resourceId?: string | undefined;
  readonly requestId?: string | undefined;
}

export interface AuditRow {
  readonly seq: number;
  readonly entry: string;
  readonly hash: string;
}

export interface AuditPage {
  readonly rows: readonly AuditRow[];
  /** Continues after the last row that was looked at; null at the end. */
  readonly next: number | null;
}

export type Direction = "asc" | "desc";

/** Rows that one statement looks at: a few milliseconds. */
const STEP_ROWS = 2000;
/**
 * The time of an entry is that of its request, and its number is given at the end, so a slow request has a higher number than later ones that
 * were fast. No entry is stored later than this after its request: see `ABANDONED_MS` of the log, and clocks of nodes that differ.
 */
const MAX_DELAY_MS = 20 * 60_000;
/** Rows that one page looks at. A filter that matches few of them gets a short page and a cursor. */
const PAGE_ROWS = 200_000;

export class AuditReader {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  async page(
    accountId: string,
    filter: AuditFilter,
    { limit, after, direction }: { limit: number; after: number | null; direction: Direction },
  ): Promise<AuditPage> {
    const rows: AuditRow[] = [];
    let looked = 0;
    // One more tells whether there is a next page.
    for await (const step of this.#steps(accountId, filter, after, direction, limit + 1)) {
      for (const row of step.rows) {
        if (rows.length === limit) return { rows, next: rows.at(-1)?.seq ?? null };
        rows.push(row);
      }
      looked += STEP_ROWS;
      if (looked >= PAGE_ROWS && !step.isLast) return { rows, next: step.end };
    }
    return { rows, next: null };
  }

  /** Yields all rows, oldest first. */
  async *all(accountId: string, filter: AuditFilter): AsyncGenerator<AuditRow> {
    for await (const { rows } of this.#steps(accountId, filter, null, "asc", STEP_ROWS)) yield* rows;
  }

  /** Each step covers a range of numbers, so its cost does not depend on the filter. `most`: rows of a step that are of interest. */
  async *#steps(
    accountId: string,
    filter: AuditFilter,
    after: number | null,
    direction: Direction,
    most: number,
  ): AsyncGenerator<{ rows: AuditRow[]; end: number; isLast: boolean }> {
    const range = await this.#range(accountId, filter);
    if (range === null) return;
    const conditions = toConditions(filter);
    const turn: ScanTurn = {
      account: accountId,
      kind: conditions.length === 0 && most < STEP_ROWS ? "page" : "search",
    };
    const isDown = direction === "desc";
    let at = isDown
      ? Math.min(range.last, (after ?? Infinity) - 1)
      : Math.max(range.first, (after ?? -Infinity) + 1);
    while (isDown ? at >= range.first : at <= range.last) {
      const low = isDown ? Math.max(range.first, at - STEP_ROWS + 1) : at;
      const high = isDown ? at : Math.min(range.last, at + STEP_ROWS - 1);
      const where = joinSql(
        [sql`account_id = ${accountId} AND seq >= ${low} AND seq <= ${high}`, ...conditions],
        " AND ",
      );
      const rows = await this.#database.scan<AuditRow>(
        isDown
          ? sql`SELECT seq, entry, hash FROM audit_entry WHERE ${where} ORDER BY seq DESC LIMIT ${most}`
          : sql`SELECT seq, entry, hash FROM audit_entry WHERE ${where} ORDER BY seq LIMIT ${most}`,
        turn,
      );
      const end = isDown ? low : high;
      yield { rows, end, isLast: isDown ? low === range.first : high === range.last };
      at = isDown ? low - 1 : high + 1;
    }
  }

  /**
   * The numbers of the entries that can be in the time range; the conditions narrow it. An entry that is `MAX_DELAY_MS` too old was stored before
   * every entry of the range, and one that is as much too young after all of them.
   */
  async #range(
    accountId: string,
    { since, before }: AuditFilter,
  ): Promise<{ first: number; last: number } | null> {
    const rows = sql`SELECT seq FROM audit_entry WHERE account_id = ${accountId}`;
    const [oldest, newest, older, younger] = await Promise.all([
      this.#seq(sql`${rows} ORDER BY seq LIMIT 1`),
      this.#seq(sql`${rows} ORDER BY seq DESC LIMIT 1`),
      since === undefined
        ? undefined
        : this.#seq(sql`${rows} AND at < ${since - MAX_DELAY_MS} ORDER BY at DESC LIMIT 1`),
      before === undefined
        ? undefined
        : this.#seq(sql`${rows} AND at >= ${before + MAX_DELAY_MS} ORDER BY at LIMIT 1`),
    ]);
    if (oldest === undefined || newest === undefined) return null;
    return { first: older ?? oldest, last: younger ?? newest };
  }

  async #seq(query: SqlQuery): Promise<number | undefined> {
    return (await this.#database.get<{ seq: number }>(query))?.seq;
  }
}

function toConditions(filter: AuditFilter): SqlQuery[] {
  const conditions: SqlQuery[] = [];
  if (filter.since !== undefined) conditions.push(sql`at >= ${filter.since}`);
  if (filter.before !== undefined) conditions.push(sql`at < ${filter.before}`);
  if (filter.actor !== undefined) conditions.push(sql`actor = ${filter.actor}`);
  if (filter.action !== undefined) conditions.push(sql`action = ${filter.action}`);
  if (filter.outcome !== undefined) conditions.push(sql`outcome = ${filter.outcome}`);
  if (filter.resourceType !== undefined) conditions.push(sql`resource_type = ${filter.resourceType}`);
  if (filter.resourceId !== undefined) conditions.push(sql`resource_id = ${filter.resourceId}`);
  if (filter.requestId !== undefined) conditions.push(sql`request_id = ${filter.requestId}`);
  return conditions;
}
