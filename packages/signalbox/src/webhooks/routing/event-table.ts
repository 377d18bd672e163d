/**
 * The statements on events, their deliveries and attempts.
 *
 * An event is claimed before it is attempted: `due_at` moves behind the end of the attempt, and `attempts` counts it. The end of an attempt is written only
 * if no later attempt was claimed; a success is written in any case.
 */
import { RowsStatement } from "../../core/rows-statement.ts";
import { joinSql, sql, type SqlQuery, sqlList, type SqlValue } from "../../core/sql.ts";
import { ulid, ulidFloor } from "../../core/ulid.ts";
import { withoutNul } from "../../core/without-nul.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type {
  AttemptCause,
  AttemptRecord,
  EventState,
  RoutedEvent,
  StoredDelivery,
  StoredState,
} from "./event-record.ts";
import { addFailures, type FailedEvent, type Issue, settleIssues } from "./issues.ts";
import type { RouteId } from "./route.ts";

/** Rows are written by their ids, and claimed by the node that owns the route. */
export const EVENT_SCOPE = { scope: "webhook_event", isConcurrent: true };

/** A new event before it is stored. */
export interface NewEvent extends Omit<
  RoutedEvent,
  "isAttempting" | "attempts" | "tries" | "cause" | "replay" | "repeat" | "issue"
> {
  readonly dedupeKey: string | null;
  readonly dedupeSince: number;
}

/** What `insert` has found. */
export interface Inserted {
  /** Ids of deliveries that were stored before. */
  readonly known: ReadonlySet<string>;
  /** Events of such deliveries for routes that had none: the delivery was stored for listeners only, or before there was the route. */
  readonly late: readonly NewEvent[];
}

/** How an attempt ended. `dueAt` null: the event ends. */
export interface EventEnd {
  readonly id: string;
  /** Of the attempt. */
  readonly number: number;
  readonly state: StoredState;
  readonly reason: string | null;
  readonly dueAt: number | null;
  /** False for an attempt that does not count, because the route was at fault. */
  readonly counts: boolean;
  /** Of an event that fails for good. */
  readonly failure?: FailedEvent;
  /** Of an event that is delivered after it had failed. */
  readonly settles?: string | null;
}

const INSERT_DELIVERY = new RowsStatement(
  `INSERT INTO webhook_stored_delivery (id, account_id, source, delivery_id, batch, type, title, entity, entity_is_exact, target, received_at,
     content_type, headers, sealed_headers, body_bytes, body) VALUES `,
  16,
  " ON CONFLICT DO NOTHING",
);
const INSERT_EVENT = new RowsStatement(
  `INSERT INTO webhook_event (id, account_id, source, route, delivery, type, entity, received_at, state, reason, due_at, node, attempts, tries, cause,
     dedupe_key) VALUES `,
  16,
);
const INSERT_ATTEMPT = new RowsStatement(
  `INSERT INTO webhook_attempt (id, account_id, event, number, cause, started_at, duration_ms, outcome, status, error, request, response_headers,
     response) VALUES `,
  13,
  // The outcome of an earlier attempt to write may be unknown.
  " ON CONFLICT DO NOTHING",
);
const DELIVERED = new RowsStatement(
  "UPDATE webhook_event SET state = 'delivered', reason = NULL, due_at = NULL, node = NULL WHERE (id) IN (VALUES ",
  1,
  ")",
);

export class EventTable {
  readonly #database: Database;

  constructor(database: Database) {
    this.#database = database;
  }

  /** Stores deliveries with their events, all or none. */
  insert(
    deliveries: readonly { readonly delivery: StoredDelivery; readonly events: readonly NewEvent[] }[],
  ): Promise<Inserted> {
    const hasWindows = deliveries.some(({ events }) => events.some(({ dedupeKey }) => dedupeKey !== null));
    return this.#database.transaction(
      async (tx) => {
        const rows = deliveries.flatMap(({ delivery }) => deliveryRow(delivery));
        const inserted = await INSERT_DELIVERY.run(tx, rows);
        const known =
          inserted === deliveries.length
            ? new Set<string>()
            : await findMissing(
                tx,
                deliveries.map(({ delivery }) => delivery.id),
              );
        const insertEvents = async (events: readonly NewEvent[]) => {
          if (!hasWindows) await INSERT_EVENT.run(tx, events.flatMap(eventRow));
          // One by one: events of this transaction may be copies of each other.
          else for (const event of events) await INSERT_EVENT.run(tx, eventRow(await unlessCopy(tx, event)));
        };
        await insertEvents(deliveries.flatMap((one) => (known.has(one.delivery.id) ? [] : one.events)));
        const late: NewEvent[] = [];
        for (const one of deliveries) {
          if (!known.has(one.delivery.id)) continue;
          const own = await findLate(tx, one.delivery, one.events);
          await insertEvents(own);
          late.push(...own);
        }
        return { known, late };
      },
      // Copies that arrive at two nodes at the same time must see each other.
      hasWindows ? { scope: "webhook_event_window" } : EVENT_SCOPE,
    );
  }

  /** Claims due events of a route, oldest first. `node`: null for a process that is alone; otherwise it must own the route. */
  async claim(
    { accountId, source, name }: RouteId,
    options: {
      readonly now: number;
      readonly until: number;
      readonly limit: number;
      readonly node: string | null;
      readonly isOrdered: boolean;
    },
  ): Promise<RoutedEvent[]> {
    const { now, until, limit, node, isOrdered } = options;
    const inOrder = isOrdered
      ? sql`AND NOT EXISTS (SELECT 1 FROM webhook_event p
              WHERE p.account_id = e.account_id AND p.source = e.source AND p.route = e.route AND p.entity = e.entity
                AND p.due_at IS NOT NULL AND p.id < e.id)`
      : sql``;
    const isOwner =
      node === null
        ? sql``
        : sql`AND EXISTS (SELECT 1 FROM webhook_route_state s WHERE s.account_id = ${accountId} AND s.source = ${source}
                AND s.name = ${name} AND s.node = ${BigInt(node)})`;
    const rows = await this.#database.transaction(
      (tx) =>
        tx.all<EventRow>(
          sql`UPDATE webhook_event SET node = ${node === null ? 0 : BigInt(node)}, due_at = ${until}, attempts = attempts + 1, tries = tries + 1
              WHERE id IN (SELECT e.id FROM webhook_event e
                           WHERE e.account_id = ${accountId} AND e.source = ${source} AND e.route = ${name} AND e.due_at <= ${now} ${inOrder}
                           ORDER BY e.due_at, e.id LIMIT ${limit})
                AND due_at <= ${now} ${isOwner}
              RETURNING *`,
        ),
      EVENT_SCOPE,
    );
    return rows.map(fromEventRow).sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** Events of the routes that are due; without `now`, all that wait. */
  async countDue(routes: readonly RouteId[], now?: number): Promise<number> {
    if (routes.length === 0) return 0;
    const due = now === undefined ? sql`due_at IS NOT NULL` : sql`due_at <= ${now}`;
    const row = await this.#database.get<{ count: number }>(
      sql`SELECT count(*) AS count FROM webhook_event WHERE ${due} AND ${ofRoutes(routes)}`,
    );
    return row?.count ?? 0;
  }

  /** Events of the routes whose attempts run. */
  async countClaimed(routes: readonly RouteId[], now: number): Promise<number> {
    if (routes.length === 0) return 0;
    const row = await this.#database.get<{ count: number }>(
      sql`SELECT count(*) AS count FROM webhook_event WHERE due_at > ${now} AND node IS NOT NULL AND ${ofRoutes(routes)}`,
    );
    return row?.count ?? 0;
  }

  /** Ends all claims of the routes: nobody will report the ends of their attempts. */
  async releaseClaims(routes: readonly RouteId[], now: number): Promise<void> {
    if (routes.length === 0) return;
    await this.#database.transaction(
      (tx) =>
        tx.run(
          sql`UPDATE webhook_event SET due_at = ${now}, node = NULL
              WHERE due_at > ${now} AND node IS NOT NULL AND ${ofRoutes(routes)}`,
        ),
      EVENT_SCOPE,
    );
  }

  /** Ends the claims of events whose attempts were not made and do not count. An event that was claimed again since is left as it is. */
  async unclaim(events: readonly RoutedEvent[], now: number): Promise<void> {
    if (events.length === 0) return;
    await this.#database.transaction(async (tx) => {
      for (const { id, attempts } of events)
        await tx.run(
          sql`UPDATE webhook_event SET due_at = ${now}, node = NULL, attempts = attempts - 1, tries = tries - 1
              WHERE id = ${id} AND attempts = ${attempts} AND due_at > ${now} AND node IS NOT NULL`,
        );
    }, EVENT_SCOPE);
  }

  /** Gives the route events of stored deliveries that it has none of. Returns how many. */
  async addMissing(
    { accountId, source, name }: RouteId,
    since: number,
    limit: number,
    toEvent: (delivery: StoredDelivery) => NewEvent,
  ): Promise<number> {
    return this.#database.transaction(async (tx) => {
      const rows = await tx.all<DeliveryRow>(
        sql`SELECT d.* FROM webhook_stored_delivery d WHERE d.account_id = ${accountId} AND d.source = ${source} AND d.id >= ${ulidFloor(since)}
              AND NOT EXISTS (SELECT 1 FROM webhook_event e WHERE e.delivery = d.id AND e.route = ${name})
            ORDER BY d.id DESC LIMIT ${limit}`,
      );
      const events = rows.toReversed().map((row) => toEvent(fromDeliveryRow(row)));
      await INSERT_EVENT.run(tx, events.flatMap(eventRow));
      return events.length;
    }, EVENT_SCOPE);
  }

  /** The ends of attempts, with their records and issues, in one transaction. Returns the issues that open. */
  async end(
    ends: readonly EventEnd[],
    attempts: readonly AttemptRecord[],
    now: number,
  ): Promise<readonly Issue[]> {
    return this.#database.transaction(async (tx) => {
      await INSERT_ATTEMPT.run(tx, attempts.flatMap(attemptRow));
      const delivered = ends.filter(({ state }) => state === "delivered");
      await DELIVERED.run(
        tx,
        delivered.map(({ id }) => id),
      );
      const failures: FailedEvent[] = [];
      const settled = delivered.flatMap(({ settles }) => settles ?? []);
      for (const { id, number, state, reason, dueAt, counts, failure } of ends) {
        if (state === "delivered") continue;
        const { changes } = await tx.run(
          sql`UPDATE webhook_event SET state = ${state}, reason = ${reason}, due_at = ${dueAt}, node = NULL, cause = 'automatic',
                tries = tries - ${counts ? 0 : 1}
              WHERE id = ${id} AND attempts = ${number} AND state = 'waiting'`,
        );
        if (changes > 0 && failure !== undefined) failures.push(failure);
      }
      const opened = failures.length === 0 ? [] : await addFailures(tx, failures, now);
      if (settled.length > 0) await settleIssues(tx, [...new Set(settled)], now);
      return opened;
    }, EVENT_SCOPE);
  }

  /** When the first waiting event of the route is due, or its attempt has ended; null if none waits. A read is cheaper than a claim in vain. */
  async firstDue({ accountId, source, name }: RouteId): Promise<number | null> {
    const row = await this.#database.get<{ due_at: number | null }>(
      sql`SELECT min(due_at) AS due_at FROM webhook_event
          WHERE account_id = ${accountId} AND source = ${source} AND route = ${name} AND due_at IS NOT NULL`,
    );
    return row?.due_at ?? null;
  }

  /** As `firstDue`, of those after `now`: earlier ones may be held by the order of their entity. */
  async nextDue({ accountId, source, name }: RouteId, now: number): Promise<number | null> {
    const row = await this.#database.get<{ due_at: number | null }>(
      sql`SELECT min(due_at) AS due_at FROM webhook_event
          WHERE account_id = ${accountId} AND source = ${source} AND route = ${name} AND due_at > ${now}`,
    );
    return row?.due_at ?? null;
  }

  /** Attempts of other nodes, or of this one before it was replaced, that may still run. */
  async countAttempting({ accountId, source, name }: RouteId, now: number): Promise<number> {
    const row = await this.#database.get<{ count: number }>(
      sql`SELECT count(*) AS count FROM webhook_event
          WHERE account_id = ${accountId} AND source = ${source} AND route = ${name} AND due_at > ${now} AND node IS NOT NULL`,
    );
    return row?.count ?? 0;
  }

  /** Ends the claims of all nodes but this one. */
  async releaseOthers({ accountId, source, name }: RouteId, node: string, now: number): Promise<void> {
    await this.#database.transaction(
      (tx) =>
        tx.run(
          sql`UPDATE webhook_event SET due_at = ${now}, node = NULL
              WHERE account_id = ${accountId} AND source = ${source} AND route = ${name} AND due_at > ${now} AND node <> ${BigInt(node)}`,
        ),
      EVENT_SCOPE,
    );
  }

  /** For a process that is alone: attempts of the process before it have ended with that process. */
  async releaseAll(now: number): Promise<void> {
    await this.#database.run(
      sql`UPDATE webhook_event SET due_at = ${now}, node = NULL WHERE node IS NOT NULL AND due_at IS NOT NULL`,
    );
  }

  delivery(id: string): Promise<StoredDelivery | undefined> {
    return this.deliveryIn(this.#database, id);
  }

  async deliveryIn(tx: Queryable, id: string): Promise<StoredDelivery | undefined> {
    const row = await tx.get<DeliveryRow>(sql`SELECT * FROM webhook_stored_delivery WHERE id = ${id}`);
    return row === undefined ? undefined : fromDeliveryRow(row);
  }

  async ownDelivery(accountId: string, id: string): Promise<StoredDelivery | undefined> {
    const delivery = await this.delivery(id);
    return delivery?.accountId === accountId ? delivery : undefined;
  }

  /** Those of the ids that no stored delivery has. */
  async missing(ids: readonly string[]): Promise<readonly string[]> {
    return ids.length === 0 ? [] : [...(await findMissing(this.#database, ids))];
  }

  async hasDeliveries(): Promise<boolean> {
    return (await this.#database.get(sql`SELECT id FROM webhook_stored_delivery LIMIT 1`)) !== undefined;
  }

  async storedBytes(): Promise<number> {
    // A server without routes needs no thread for it.
    if (!(await this.hasDeliveries())) return 0;
    // The sum of integers is no integer in PostgreSQL.
    const [row] = await this.#database.scan<{ bytes: number }>(
      sql`SELECT CAST(coalesce(sum(body_bytes), 0) AS BIGINT) AS bytes FROM webhook_stored_delivery`,
      { account: "", kind: "search" },
    );
    return row?.bytes ?? 0;
  }

  async find(accountId: string, id: string): Promise<RoutedEvent | undefined> {
    const row = await this.#database.get<EventRow>(
      sql`SELECT * FROM webhook_event WHERE account_id = ${accountId} AND id = ${id}`,
    );
    return row === undefined ? undefined : fromEventRow(row);
  }

  async attemptsOf(accountId: string, event: string): Promise<AttemptRecord[]> {
    const rows = await this.#database.all<AttemptRow>(
      sql`SELECT * FROM webhook_attempt WHERE account_id = ${accountId} AND event = ${event} ORDER BY id LIMIT 1000`,
    );
    return rows.map(fromAttemptRow);
  }

  /** Those of the ids that fulfil a condition, oldest first. */
  async which(tx: Queryable, ids: readonly string[], condition: SqlQuery): Promise<RoutedEvent[]> {
    if (ids.length === 0) return [];
    const rows = await tx.all<EventRow>(
      sql`SELECT e.* FROM webhook_event e WHERE e.id IN (${sqlList(ids)}) AND ${condition} ORDER BY e.id`,
    );
    return rows.map(fromEventRow);
  }

  /** By route and state, for lists of routes. */
  async countStates(accountId: string, source: string): Promise<StateCount[]> {
    return this.#database.scan<StateCount>(
      sql`SELECT route, state, count(*) AS count, min(due_at) AS due_at, min(received_at) AS oldest FROM webhook_event
          WHERE account_id = ${accountId} AND source = ${source} GROUP BY route, state`,
      { account: accountId, kind: "search" },
    );
  }

  /** Outcomes and durations of the newest attempts of a source since the time, by route. */
  async recentAttempts(accountId: string, source: string, since: number, limit: number) {
    const rows = await this.#database.scan<{ route: string; outcome: string; duration_ms: number }>(
      sql`SELECT e.route, a.outcome, a.duration_ms FROM webhook_attempt a JOIN webhook_event e ON e.id = a.event
          WHERE a.account_id = ${accountId} AND a.id >= ${ulidFloor(since)} AND e.source = ${source} ORDER BY a.id DESC LIMIT ${limit}`,
      { account: accountId, kind: "search" },
    );
    return Map.groupBy(rows, ({ route }) => route);
  }

  /** Queues one event that has ended; false if it waits. */
  replayOne(event: RoutedEvent, now: number): Promise<boolean> {
    const repeat = event.state === "delivered" ? ulid(now) : event.repeat;
    return this.#database.transaction(
      (tx) => this.requeue(tx, event, { now, cause: "manual", replay: null, repeat }),
      EVENT_SCOPE,
    );
  }

  /** Queues an event that has ended; false if it waits. */
  async requeue(
    tx: Queryable,
    event: Pick<RoutedEvent, "id" | "state" | "accountId">,
    change: {
      readonly now: number;
      readonly cause: AttemptCause;
      readonly replay: string | null;
      readonly repeat: string | null;
    },
  ): Promise<boolean> {
    const { changes } = await tx.run(
      sql`UPDATE webhook_event SET state = 'waiting', reason = NULL, due_at = ${change.now}, tries = 0, cause = ${change.cause},
            replay = ${change.replay}, repeat = ${change.repeat}
          WHERE id = ${event.id} AND account_id = ${event.accountId} AND due_at IS NULL`,
    );
    return changes === 1;
  }

  /** Ends waiting events; their attempts in progress end as they do. Returns how many. */
  async cancel(tx: Queryable, condition: SqlQuery, reason: string): Promise<number> {
    const { changes } = await tx.run(
      sql`UPDATE webhook_event SET state = 'cancelled', reason = ${reason}, due_at = NULL, node = NULL
          WHERE due_at IS NOT NULL AND ${condition}`,
    );
    return changes;
  }

  async cancelOne(accountId: string, id: string): Promise<boolean> {
    return (
      (await this.#database.transaction(
        (tx) => this.cancel(tx, sql`account_id = ${accountId} AND id = ${id}`, "cancelled by an operator"),
        EVENT_SCOPE,
      )) > 0
    );
  }

  /** Deletes what ended before the time, at most `limit` rows of each table. Returns the number of deleted rows. */
  async prune(before: number, limit: number): Promise<number> {
    const floor = ulidFloor(before);
    const remove = (statement: SqlQuery) =>
      this.#database.transaction((tx) => tx.run(statement), EVENT_SCOPE);
    const attempts = await remove(
      sql`DELETE FROM webhook_attempt WHERE id IN (SELECT id FROM webhook_attempt WHERE id < ${floor} ORDER BY id LIMIT ${limit})`,
    );
    const events = await remove(
      sql`DELETE FROM webhook_event WHERE id IN
            (SELECT id FROM webhook_event WHERE id < ${floor} AND due_at IS NULL ORDER BY id LIMIT ${limit})`,
    );
    const deliveries = await remove(
      sql`DELETE FROM webhook_stored_delivery WHERE id IN
            (SELECT d.id FROM webhook_stored_delivery d WHERE d.id < ${floor}
               AND NOT EXISTS (SELECT 1 FROM webhook_event e WHERE e.delivery = d.id) ORDER BY d.id LIMIT ${limit})`,
    );
    return attempts.changes + events.changes + deliveries.changes;
  }
}

function ofRoutes(routes: readonly RouteId[]): SqlQuery {
  const each = routes.map(
    ({ accountId, source, name }) =>
      sql`(account_id = ${accountId} AND source = ${source} AND route = ${name})`,
  );
  return sql`(${joinSql(each, " OR ")})`;
}

export interface StateCount {
  readonly route: string;
  readonly state: StoredState;
  readonly count: number;
  readonly due_at: number | null;
  readonly oldest: number;
}

export function stateOf(
  event: Pick<RoutedEvent, "state" | "dueAt" | "isAttempting">,
  isPaused: boolean,
  now: number,
): EventState {
  if (event.state !== "waiting") return event.state;
  if (event.isAttempting) return "queued";
  if (isPaused) return "held";
  return (event.dueAt ?? 0) > now ? "scheduled" : "queued";
}

/** Those of the ids that have no row. */
async function findMissing(database: Queryable, ids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await database.all<{ id: string }>(
    sql`SELECT id FROM webhook_stored_delivery WHERE id IN (${sqlList(ids)})`,
  );
  const present = new Set(rows.map(({ id }) => id));
  return new Set(ids.filter((id) => !present.has(id)));
}

/** Of a delivery that was stored before: its events for routes that have none. */
async function findLate(
  tx: Queryable,
  { accountId, source, deliveryId }: StoredDelivery,
  events: readonly NewEvent[],
): Promise<NewEvent[]> {
  const stored = await tx.get<{ id: string }>(
    sql`SELECT id FROM webhook_stored_delivery
        WHERE account_id = ${accountId} AND source = ${source} AND delivery_id = ${withoutNul(deliveryId)}`,
  );
  if (stored === undefined) return [];
  const withoutEvent = async () => {
    const rows = await tx.all<{ route: string }>(
      sql`SELECT DISTINCT route FROM webhook_event WHERE delivery = ${stored.id}`,
    );
    const routes = new Set(rows.map(({ route }) => route));
    return events.filter(({ name }) => !routes.has(name));
  };
  if ((await withoutEvent()).length === 0) return [];
  // Locks the row: two nodes may have found the same.
  const { changes } = await tx.run(
    sql`UPDATE webhook_stored_delivery SET batch = batch WHERE id = ${stored.id}`,
  );
  return changes === 0 ? [] : (await withoutEvent()).map((event) => ({ ...event, delivery: stored.id }));
}

async function unlessCopy(tx: Queryable, event: NewEvent): Promise<NewEvent> {
  if (event.dedupeKey === null || event.state !== "waiting") return event;
  const earlier = await tx.get<{ id: string }>(
    sql`SELECT id FROM webhook_event WHERE account_id = ${event.accountId} AND source = ${event.source} AND route = ${event.name}
          AND dedupe_key = ${event.dedupeKey} AND received_at > ${event.dedupeSince} AND state <> 'ignored' LIMIT 1`,
  );
  if (earlier === undefined) return event;
  return { ...event, state: "ignored", reason: `dedupe: it equals the event ${earlier.id}`, dueAt: null };
}

function deliveryRow(delivery: StoredDelivery): SqlValue[] {
  return [
    delivery.id,
    delivery.accountId,
    delivery.source,
    // The payload may have any characters.
    withoutNul(delivery.deliveryId),
    delivery.batch,
    withoutNul(delivery.type),
    withoutNul(delivery.title),
    delivery.entity === null ? null : withoutNul(delivery.entity),
    delivery.isEntityExact ? 1 : 0,
    withoutNul(delivery.target),
    delivery.receivedAt,
    delivery.contentType,
    JSON.stringify(delivery.headers),
    delivery.sealedHeaders,
    delivery.body.length,
    delivery.body,
  ];
}

function eventRow(event: NewEvent): SqlValue[] {
  return [
    event.id,
    event.accountId,
    event.source,
    event.name,
    event.delivery,
    withoutNul(event.type),
    event.entity === null ? null : withoutNul(event.entity),
    event.receivedAt,
    event.state,
    event.reason,
    event.dueAt,
    null,
    0,
    0,
    "initial",
    event.dedupeKey,
  ];
}

function attemptRow(attempt: AttemptRecord): SqlValue[] {
  return [
    attempt.id,
    attempt.accountId,
    attempt.event,
    attempt.number,
    attempt.cause,
    attempt.startedAt,
    Math.round(attempt.durationMs),
    attempt.outcome,
    attempt.status,
    attempt.error === null ? null : withoutNul(attempt.error),
    attempt.request === null ? null : JSON.stringify(attempt.request),
    attempt.responseHeaders === null ? null : JSON.stringify(attempt.responseHeaders),
    attempt.response,
  ];
}

interface DeliveryRow {
  readonly id: string;
  readonly account_id: string;
  readonly source: string;
  readonly delivery_id: string;
  readonly batch: string | null;
  readonly type: string;
  readonly title: string;
  readonly entity: string | null;
  readonly entity_is_exact: number;
  readonly target: string;
  readonly received_at: number;
  readonly content_type: string | null;
  readonly headers: string;
  readonly sealed_headers: string | null;
  readonly body: Uint8Array;
}

function fromDeliveryRow(row: DeliveryRow): StoredDelivery {
  return {
    id: row.id,
    accountId: row.account_id,
    source: row.source,
    deliveryId: row.delivery_id,
    batch: row.batch,
    type: row.type,
    title: row.title,
    entity: row.entity,
    isEntityExact: row.entity_is_exact === 1,
    target: row.target,
    receivedAt: row.received_at,
    contentType: row.content_type,
    headers: JSON.parse(row.headers) as Record<string, string>,
    sealedHeaders: row.sealed_headers,
    body: row.body,
  };
}

export interface EventRow {
  readonly id: string;
  readonly account_id: string;
  readonly source: string;
  readonly route: string;
  readonly delivery: string;
  readonly type: string;
  readonly entity: string | null;
  readonly received_at: number;
  readonly state: StoredState;
  readonly reason: string | null;
  readonly due_at: number | null;
  readonly node: number | null;
  readonly attempts: number;
  readonly tries: number;
  readonly cause: AttemptCause;
  readonly replay: string | null;
  readonly repeat: string | null;
  readonly issue: string | null;
}

export function fromEventRow(row: EventRow): RoutedEvent {
  return {
    id: row.id,
    accountId: row.account_id,
    source: row.source,
    name: row.route,
    delivery: row.delivery,
    type: row.type,
    entity: row.entity,
    receivedAt: row.received_at,
    state: row.state,
    reason: row.reason,
    dueAt: row.due_at,
    isAttempting: row.node !== null,
    attempts: row.attempts,
    tries: row.tries,
    cause: row.cause,
    replay: row.replay,
    repeat: row.repeat,
    issue: row.issue,
  };
}

interface AttemptRow {
  readonly id: string;
  readonly account_id: string;
  readonly event: string;
  readonly number: number;
  readonly cause: AttemptCause;
  readonly started_at: number;
  readonly duration_ms: number;
  readonly outcome: AttemptRecord["outcome"];
  readonly status: number | null;
  readonly error: string | null;
  readonly request: string | null;
  readonly response_headers: string | null;
  readonly response: Uint8Array | null;
}

function fromAttemptRow(row: AttemptRow): AttemptRecord {
  return {
    id: row.id,
    accountId: row.account_id,
    event: row.event,
    number: row.number,
    cause: row.cause,
    startedAt: row.started_at,
    durationMs: row.duration_ms,
    outcome: row.outcome,
    status: row.status,
    error: row.error,
    request: row.request === null ? null : (JSON.parse(row.request) as NonNullable<AttemptRecord["request"]>),
    responseHeaders:
      row.response_headers === null ? null : (JSON.parse(row.response_headers) as Record<string, string>),
    response: row.response,
  };
}
