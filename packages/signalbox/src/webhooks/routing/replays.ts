/**
 * Bulk replays: queues the events that a query finds, oldest first, in steps.
 *
 *   running ─ all events queued or skipped → done
 *      └ cancelled by an operator: events that it has queued and that still wait are cancelled, too
 *
 * Invariants:
 * 1. A replay touches the events that its query found when it was created, and no event twice: each step moves the position in its transaction.
 *    Events are looked for before the transaction, a bounded number in each step, and compared with the query again in it.
 * 2. It goes on after a restart, at any node. A node takes it for `LEASE_MS` with each step, and the node that creates it takes it first.
 * 3. An ignored event is queued only if the filters of its route match now.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { sql } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { RoutedEvent, StoredState } from "./event-record.ts";
import type { EventCount, EventQuery, EventSearch, StateContext } from "./event-search.ts";
import { EVENT_SCOPE, type EventTable } from "./event-table.ts";
import { routeKey } from "./route.ts";

/** A short transaction. Filters of ignored events are compared in it. */
const STEP = 100;
const LEASE_MS = 30_000;
/** Of one account. */
const MAX_RUNNING = 10;

export type ReplayState = "running" | "done" | "cancelled";

export interface Replay {
  readonly id: string;
  readonly accountId: string;
  readonly query: EventQuery;
  readonly state: ReplayState;
  readonly upto: string;
  readonly position: string;
  readonly total: number;
  readonly queued: number;
  readonly skipped: number;
  readonly createdAt: number;
  readonly endedAt: number | null;
}

export interface ReplayPlan {
  readonly count: number;
  readonly oldest: number | null;
  readonly newest: number | null;
  readonly routes: readonly EventCount[];
}

export interface ReplaysParts {
  readonly database: Database;
  readonly table: EventTable;
  readonly search: EventSearch;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Null for a process that is alone. */
  readonly node: () => string | null;
  context(accountId: string): StateContext;
  /** Whether the filters of the event's route match its delivery now. */
  isTakenNow(tx: Queryable, event: RoutedEvent): Promise<boolean>;
  wake(keys: Iterable<string>): void;
}

interface Row {
  readonly id: string;
  readonly account_id: string;
  readonly query: string;
  readonly state: ReplayState;
  readonly upto: string;
  readonly position: string;
  readonly total: number;
  readonly queued: number;
  readonly skipped: number;
  readonly created_at: number;
  readonly ended_at: number | null;
}

export class Replays {
  readonly #parts: ReplaysParts;
  #running: Promise<void> = Promise.resolve();
  #isStopped = false;

  constructor(parts: ReplaysParts) {
    this.#parts = parts;
  }

  async plan(accountId: string, query: EventQuery, signal?: AbortSignal): Promise<ReplayPlan> {
    const { search } = this.#parts;
    const routes = await search.count(accountId, query, this.#parts.context(accountId), signal);
    return {
      count: routes.reduce((sum, { count }) => sum + count, 0),
      oldest: routes.length === 0 ? null : Math.min(...routes.map(({ oldest }) => oldest)),
      newest: routes.length === 0 ? null : Math.max(...routes.map(({ newest }) => newest)),
      routes,
    };
  }

  async create(accountId: string, query: EventQuery, signal?: AbortSignal): Promise<Replay> {
    const { database, clock, node } = this.#parts;
    const plan = await this.plan(accountId, query, signal);
    const now = clock.now();
    const id = ulid(now);
    const upto = plan.routes.reduce((last, route) => (route.last > last ? route.last : last), "");
    await database.transaction(async (tx) => {
      const running = await tx.get<{ count: number }>(
        sql`SELECT count(*) AS count FROM webhook_replay WHERE account_id = ${accountId} AND state = 'running'`,
      );
      if ((running?.count ?? 0) >= MAX_RUNNING)
        throw new SignalboxError("conflict", {
          message: `${MAX_RUNNING} replays of this account are running`,
        });
      await tx.run(
        sql`INSERT INTO webhook_replay (id, account_id, query, state, upto, position, total, queued, skipped, created_at, node, node_until)
            VALUES (${id}, ${accountId}, ${JSON.stringify(query)}, 'running', ${upto}, '', ${plan.count}, 0, 0, ${now},
              ${BigInt(node() ?? 0)}, ${now + LEASE_MS})`,
      );
    }, EVENT_SCOPE);
    this.run();
    return this.find(accountId, id);
  }

  async find(accountId: string, id: string): Promise<Replay> {
    const row = await this.#parts.database.get<Row>(
      sql`SELECT * FROM webhook_replay WHERE account_id = ${accountId} AND id = ${id}`,
    );
    if (row === undefined) throw new SignalboxError("not_found", { message: "Replay not found" });
    return fromRow(row);
  }

  /** Newest first, before `cursor`. */
  async list(accountId: string, cursor: string | undefined, limit: number): Promise<Replay[]> {
    const before = cursor === undefined ? sql`` : sql`AND id < ${cursor}`;
    const rows = await this.#parts.database.all<Row>(
      sql`SELECT * FROM webhook_replay WHERE account_id = ${accountId} ${before} ORDER BY id DESC LIMIT ${limit}`,
    );
    return rows.map(fromRow);
  }

  /** What has become of the events that it has queued. */
  async results(accountId: string, id: string): Promise<ReadonlyMap<StoredState, number>> {
    const rows = await this.#parts.database.scan<{ state: StoredState; count: number }>(
      sql`SELECT state, count(*) AS count FROM webhook_event WHERE replay = ${id} GROUP BY state`,
      { account: accountId, kind: "search" },
    );
    return new Map(rows.map(({ state, count }) => [state, count]));
  }

  async cancel(accountId: string, id: string): Promise<Replay> {
    const { database, table, clock } = this.#parts;
    await this.find(accountId, id);
    await database.transaction(async (tx) => {
      await tx.run(
        sql`UPDATE webhook_replay SET state = 'cancelled', ended_at = ${clock.now()} WHERE id = ${id} AND state = 'running'`,
      );
      await table.cancel(tx, sql`replay = ${id}`, "the replay was cancelled");
    }, EVENT_SCOPE);
    return this.find(accountId, id);
  }

  /** Goes on with replays that no other node works on. */
  run(): void {
    this.#running = this.#running
      .then(() => this.#runAll())
      .catch((err: unknown) =>
        this.#parts.logger.warn({ err }, "a bulk replay of webhook events was interrupted; it goes on later"),
      );
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#running;
  }

  async #runAll(): Promise<void> {
    const rows = await this.#parts.database.all<Row>(
      sql`SELECT * FROM webhook_replay WHERE state = 'running' ORDER BY id`,
    );
    for (const { id } of rows) while (!this.#isStopped && (await this.#step(id))) await nextTurn();
  }

  /** False if it has ended, or another node works on it. */
  async #step(id: string): Promise<boolean> {
    const { database, table, search, clock, node } = this.#parts;
    const isFree = (now: number) =>
      sql`state = 'running' AND (node IS NULL OR node = ${BigInt(node() ?? 0)} OR node_until < ${now})`;
    const found = await database.get<Row>(
      sql`SELECT * FROM webhook_replay WHERE id = ${id} AND ${isFree(clock.now())}`,
    );
    if (found === undefined) return false;
    const { accountId, query, position, upto } = fromRow(found);
    const context = this.#parts.context(accountId);
    const next = await search.next(accountId, query, context, { after: position, upto, limit: STEP });
    const keys = new Set<string>();
    const goesOn = await database.transaction(async (tx) => {
      keys.clear();
      const now = clock.now();
      const taken = await tx.run(
        sql`UPDATE webhook_replay SET node = ${BigInt(node() ?? 0)}, node_until = ${now + LEASE_MS}
            WHERE id = ${id} AND position = ${position} AND ${isFree(now)}`,
      );
      if (taken.changes === 0) return false;
      const page = await table.which(tx, next.ids, search.condition(accountId, query, context));
      let queued = 0;
      for (const event of page) {
        const isQueued =
          (event.state !== "ignored" || (await this.#parts.isTakenNow(tx, event))) &&
          (await table.requeue(tx, event, {
            now,
            cause: "bulk",
            replay: id,
            repeat: event.state === "delivered" ? ulid(now) : event.repeat,
          }));
        if (!isQueued) continue;
        queued += 1;
        keys.add(routeKey(event));
      }
      const { isDone } = next;
      await tx.run(
        sql`UPDATE webhook_replay SET position = ${next.position}, queued = queued + ${queued}, skipped = skipped + ${page.length - queued},
              state = ${isDone ? "done" : "running"}, ended_at = ${isDone ? now : null} WHERE id = ${id}`,
      );
      return !isDone;
    }, EVENT_SCOPE);
    this.#parts.wake(keys);
    return goesOn;
  }
}

/** Requests come between two steps. */
function nextTurn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

function fromRow(row: Row): Replay {
  return {
    id: row.id,
    accountId: row.account_id,
    query: JSON.parse(row.query) as EventQuery,
    state: row.state,
    upto: row.upto,
    position: row.position,
    total: row.total,
    queued: row.queued,
    skipped: row.skipped,
    createdAt: row.created_at,
    endedAt: row.ended_at,
  };
}
