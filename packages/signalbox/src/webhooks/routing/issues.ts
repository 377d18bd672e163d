/**
 * Issues: failed events, grouped by route and cause.
 *
 *   open ─ acknowledged ─ resolved ─ (another event fails for the cause) ─ open
 *
 * Invariants:
 * 1. An event that failed for good belongs to one issue; both are written in the transaction that ends its last attempt.
 * 2. An issue is resolved by an operator, or when the last of its events that had failed was delivered by a replay, cancelled, or is not kept any more.
 * 3. One notice for an issue that opens, however many events fail: alerts count issues.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { joinSql, sql, sqlList } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type { RouteId } from "./route.ts";

export const ISSUE_STATES = ["open", "acknowledged", "resolved"] as const;
export type IssueState = (typeof ISSUE_STATES)[number];

export interface Issue extends RouteId {
  readonly id: string;
  readonly cause: string;
  readonly state: IssueState;
  /** Events since it was opened. */
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The event that failed last. */
  readonly sample: string;
  readonly resolvedAt: number | null;
}

export interface FailedEvent extends RouteId {
  readonly event: string;
  readonly cause: string;
}

export interface IssueQuery {
  readonly source?: string | undefined;
  readonly route?: string | undefined;
  readonly state?: IssueState | undefined;
}

const SCOPE = { scope: "webhook_event", isConcurrent: true };

export class Issues {
  readonly #database: Database;
  readonly #clock: Clock;

  constructor(database: Database, clock: Clock) {
    this.#database = database;
    this.#clock = clock;
  }

  /** Those that occurred last come first. */
  async list(accountId: string, query: IssueQuery, limit: number): Promise<Issue[]> {
    const where = [sql`account_id = ${accountId}`];
    if (query.source !== undefined) where.push(sql`source = ${query.source}`);
    if (query.route !== undefined) where.push(sql`route = ${query.route}`);
    if (query.state !== undefined) where.push(sql`state = ${query.state}`);
    const rows = await this.#database.all<IssueRow>(
      sql`SELECT * FROM webhook_issue WHERE ${joinSql(where, " AND ")} ORDER BY last_at DESC, id DESC LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  async find(accountId: string, id: string): Promise<Issue> {
    const row = await this.#database.get<IssueRow>(
      sql`SELECT * FROM webhook_issue WHERE account_id = ${accountId} AND id = ${id}`,
    );
    if (row === undefined) throw new SignalboxError("not_found", { message: "Issue not found" });
    return fromRow(row);
  }

  async setState(accountId: string, id: string, state: "acknowledged" | "resolved"): Promise<Issue> {
    await this.find(accountId, id);
    const resolvedAt = state === "resolved" ? this.#clock.now() : null;
    await this.#database.transaction(
      (tx) =>
        tx.run(
          sql`UPDATE webhook_issue SET state = ${state}, resolved_at = ${resolvedAt}
              WHERE account_id = ${accountId} AND id = ${id} AND state <> ${state} AND state <> 'resolved'`,
        ),
      SCOPE,
    );
    return this.find(accountId, id);
  }

  /** Resolves issues without events, and deletes those that were resolved before the time. */
  async prune(before: number): Promise<void> {
    await this.#database.transaction(async (tx) => {
      await tx.run(
        sql`UPDATE webhook_issue SET state = 'resolved', resolved_at = ${this.#clock.now()}
            WHERE state <> 'resolved' AND NOT EXISTS
              (SELECT 1 FROM webhook_event e WHERE e.issue = webhook_issue.id AND e.state IN ('failed', 'waiting'))`,
      );
      await tx.run(sql`DELETE FROM webhook_issue WHERE state = 'resolved' AND resolved_at < ${before}`);
    }, SCOPE);
  }
}

/** Within the transaction that ends attempts. Returns the issues that open. */
export async function addFailures(
  tx: Queryable,
  failures: readonly FailedEvent[],
  now: number,
): Promise<Issue[]> {
  const opened: Issue[] = [];
  const groups = Map.groupBy(failures, ({ accountId, source, name, cause }) =>
    JSON.stringify([accountId, source, name, cause]),
  );
  for (const group of groups.values()) {
    const [first] = group;
    const last = group.at(-1);
    if (first === undefined || last === undefined) continue;
    const { accountId, source, name, cause } = first;
    const row = await tx.get<IssueRow>(
      sql`INSERT INTO webhook_issue (id, account_id, source, route, cause, state, count, first_at, last_at, sample)
          VALUES (${ulid(now)}, ${accountId}, ${source}, ${name}, ${cause}, 'open', ${group.length}, ${now}, ${now}, ${last.event})
          ON CONFLICT (account_id, source, route, cause) DO UPDATE SET
            count = CASE WHEN webhook_issue.state = 'resolved' THEN excluded.count ELSE webhook_issue.count + excluded.count END,
            first_at = CASE WHEN webhook_issue.state = 'resolved' THEN excluded.first_at ELSE webhook_issue.first_at END,
            state = CASE WHEN webhook_issue.state = 'resolved' THEN 'open' ELSE webhook_issue.state END,
            last_at = excluded.last_at, sample = excluded.sample, resolved_at = NULL
          RETURNING *`,
    );
    if (row === undefined) continue;
    const ids = group.map(({ event }) => event);
    await tx.run(sql`UPDATE webhook_event SET issue = ${row.id} WHERE id IN (${sqlList(ids)})`);
    if (row.count === group.length) opened.push(fromRow(row));
  }
  return opened;
}

/** Events of these issues were delivered: resolves those without an event that failed or is being replayed. */
export async function settleIssues(tx: Queryable, issues: readonly string[], now: number): Promise<void> {
  await tx.run(
    sql`UPDATE webhook_issue SET state = 'resolved', resolved_at = ${now}
        WHERE id IN (${sqlList(issues)}) AND state <> 'resolved' AND NOT EXISTS
          (SELECT 1 FROM webhook_event e WHERE e.issue = webhook_issue.id AND e.state IN ('failed', 'waiting'))`,
  );
}

interface IssueRow {
  readonly id: string;
  readonly account_id: string;
  readonly source: string;
  readonly route: string;
  readonly cause: string;
  readonly state: IssueState;
  readonly count: number;
  readonly first_at: number;
  readonly last_at: number;
  readonly sample: string;
  readonly resolved_at: number | null;
}

function fromRow(row: IssueRow): Issue {
  return {
    id: row.id,
    accountId: row.account_id,
    source: row.source,
    name: row.route,
    cause: row.cause,
    state: row.state,
    count: row.count,
    firstAt: row.first_at,
    lastAt: row.last_at,
    sample: row.sample,
    resolvedAt: row.resolved_at,
  };
}
