/**
 * Listeners: programs on the laptops of developers that take the events of their routes themselves (`signalbox webhooks listen`).
 *
 * A listener is a name. It has a route of that name at each of its sources (`to: { listen: true }`), or it has taken another route, whose target then
 * receives nothing. Its events wait in the table like all others, so that what arrived while the laptop slept comes first, and replays reach it.
 *
 * Invariants:
 * 1. An event is claimed before it is sent to a listener. Without a result it is due again when its claim ends, and is sent again with the same id.
 *    A listener has one connection, at whichever node: a new one ends the one before, whose events without results are due again. The row of
 *    `webhook_listener` names it; what a connection has claimed is sent only if the row names it after the claim.
 * 2. A listener has at most `max` events without a result, whichever nodes its requests reach.
 * 3. A route that was taken returns to its target when its listener has not been seen for `LEASE_MS`. A listener's own routes are removed after `KEEP_MS`,
 *    unless the configuration file has them.
 */
import { randomUUID } from "node:crypto";
import { Readable } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import type { Sealing } from "../../core/sealing.ts";
import { SerialByKey } from "../../core/serial.ts";
import { sql } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import type { Database } from "../../database/database.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Source } from "../source.ts";
import { visibleHeaders } from "../read-event.ts";
import { follow } from "./attempt-event.ts";
import { openHeaders } from "./attempt-url.ts";
import type { AttemptRecord, RoutedEvent, StoredDelivery } from "./event-record.ts";
import { EVENT_SCOPE, type EventEnd, type EventTable, type NewEvent } from "./event-table.ts";
import type { ListedDeliveries } from "./listed-deliveries.ts";
import type { Route } from "./route.ts";
import type { RouteStore } from "./route-store.ts";

/** More than a breakpoint of a minute: the laptop gives up after this time, too. */
const CLAIM_MS = 90_000;
const LEASE_MS = 60_000;
export const KEEP_MS = 24 * 60 * 60 * 1000;
/** Finds dead connections, and keeps proxies from closing idle ones. */
const PING_MS = 15_000;
/** Events that other nodes have stored are found within this time. */
const LOOK_MS = 1000;
const RENEW_MS = 15_000;
const MAX_BACKFILL = 1000;
const CONNECTION_SCOPE = { scope: "webhook_listener", isConcurrent: true };

export interface ListenersParts {
  readonly database: Database;
  readonly table: EventTable;
  readonly store: RouteStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sealing: Sealing;
  readonly sources: ReadonlyMap<string, Source>;
  readonly listed: Pick<ListedDeliveries, "since">;
  /** Stores deliveries that agents received at once. */
  copy(deliveries: readonly StoredDelivery[]): Promise<void>;
  onAttempt(route: Route, outcome: AttemptRecord["outcome"]): void;
  wake(keys: Iterable<string>): void;
  toEvent(route: Route, delivery: StoredDelivery, now: number): NewEvent;
}

export interface ListenerWish {
  /** Default: all sources of the account that accept deliveries. */
  readonly sources?: readonly string[] | undefined;
  readonly when?: object | undefined;
  /** A route of the only source. */
  readonly insteadOf?: string | undefined;
  /** Earlier events are not sent; stored deliveries from then on are. */
  readonly since?: number | undefined;
}

/** A listener that was created or changed. */
export interface PutListener {
  readonly routes: readonly Route[];
  /** Deliveries since the wished time that cannot be sent, because their bodies were too large for the list of deliveries. */
  readonly notKept: number;
}

export interface ListenerResult {
  readonly event: string;
  readonly attempt: number;
  readonly url: string;
  /** Null if the local program has not answered. */
  readonly status: number | null;
  readonly error: string | null;
  readonly durationMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
}

export interface StreamOptions {
  /** Events without a result at a time. */
  readonly max: number;
  /** Signs anew, with the present time. */
  readonly isSigned: boolean;
}

export class Listeners {
  readonly #parts: ListenersParts;
  readonly #waiting = new Set<() => void>();
  readonly #closed = new AbortController();
  /** Of this process, by account and name. */
  readonly #streams = new Map<string, AbortController>();
  /** A stream that was replaced claims nothing after the next one has begun. */
  readonly #claims = new SerialByKey();

  constructor(parts: ListenersParts) {
    this.#parts = parts;
  }

  /** Those with the name, and those that were taken. */
  routesOf(accountId: string, name: string): Route[] {
    return [...this.#parts.store.all()].filter(
      (route) =>
        route.accountId === accountId &&
        (route.target.kind === "listen" ? route.name === name : route.listener === name),
    );
  }

  find(accountId: string, name: string): readonly [Route, ...Route[]] {
    const [first, ...others] = this.routesOf(accountId, name);
    if (first === undefined) throw new SignalboxError("not_found", { message: "Listener not found" });
    return [first, ...others];
  }

  /** Creates the listener, or changes it: its routes at other sources are removed. */
  async put(accountId: string, name: string, wish: ListenerWish): Promise<PutListener> {
    const { store, clock } = this.#parts;
    const sources = this.#sourcesOf(accountId, wish.sources);
    const now = clock.now();
    let notKept = 0;
    if (wish.insteadOf === undefined) {
      for (const source of sources) notKept += await this.#listen({ accountId, source, name }, wish, now);
    } else {
      if (wish.when !== undefined || wish.since !== undefined)
        throw new SignalboxError("invalid_request", {
          message:
            "instead_of: expected neither filters nor since; the listener receives what the route would",
        });
      const [source = "", ...others] = sources;
      if (others.length > 0)
        throw new SignalboxError("invalid_request", {
          message: "instead_of: expected one source, whose route is taken",
        });
      await store.take({ accountId, source, name: wish.insteadOf }, name, now + LEASE_MS);
    }
    const wanted = new Set(sources);
    for (const route of this.routesOf(accountId, name)) {
      const isTaken = route.target.kind !== "listen";
      if (wanted.has(route.source) && isTaken === (wish.insteadOf !== undefined)) continue;
      if (isTaken) await store.release(route);
      else if (route.origin === "api") await store.delete(route);
    }
    return { routes: this.find(accountId, name), notKept };
  }

  /** Removes its routes, and returns what it has taken. */
  async remove(accountId: string, name: string): Promise<void> {
    const { store } = this.#parts;
    for (const route of this.find(accountId, name)) {
      if (route.target.kind !== "listen") await store.release(route);
      else if (route.origin === "api") await store.delete(route);
    }
    await this.#forgetConnection(accountId, name);
  }

  countWaiting(routes: readonly Route[]): Promise<number> {
    return this.#parts.table.countDue(routes);
  }

  /** Server-sent events: `delivery`, and `ping` while there is none. Ends the stream that the listener had before. */
  open(accountId: string, name: string, options: StreamOptions): Readable {
    this.find(accountId, name);
    const key = keyOf(accountId, name);
    this.#streams.get(key)?.abort();
    const ended = new AbortController();
    this.#streams.set(key, ended);
    const signal = AbortSignal.any([ended.signal, this.#closed.signal]);
    const frames = this.#deliver(accountId, name, options, signal);
    let isReading = false;
    const read = async (stream: Readable): Promise<void> => {
      const { done, value } = await frames.next();
      isReading = false;
      stream.push(done === true ? null : value);
    };
    return new Readable({
      read() {
        if (isReading) return;
        isReading = true;
        read(this).catch((error: unknown) => this.destroy(error as Error));
      },
      // At once: a stream that waits for events must not claim one that it cannot send any more.
      destroy: (error, done) => {
        ended.abort();
        if (this.#streams.get(key) === ended) this.#streams.delete(key);
        this.#finish(frames);
        done(error);
      },
    });
  }

  /** Results of events that the listener has no more, or that another attempt has overtaken, change nothing. Returns how many did. */
  async report(accountId: string, name: string, results: readonly ListenerResult[]): Promise<number> {
    const { table, clock } = this.#parts;
    const routes = new Map(this.find(accountId, name).map((route) => [route.key, route]));
    const ends: EventEnd[] = [];
    const records: AttemptRecord[] = [];
    for (const result of results) {
      const event = await table.find(accountId, result.event);
      if (event === undefined || event.attempts !== result.attempt) continue;
      const route = routes.get(JSON.stringify([accountId, event.source, event.name]));
      if (route === undefined) continue;
      const isDelivered = result.status !== null && result.status >= 200 && result.status <= 299;
      const error = isDelivered ? null : (result.error ?? `the listener answered ${result.status}`);
      const verdict = isDelivered ? "delivered" : "failed";
      const outcome = { verdict, status: result.status, error, retryAfterMs: null } as const;
      ends.push(follow({ clock, random: Math.random }, route, event, outcome).end);
      records.push(toRecord(event, result, error, clock.now()));
      this.#parts.onAttempt(route, verdict);
    }
    if (ends.length > 0) await table.end(ends, records, clock.now());
    this.wake();
    return ends.length;
  }

  /** Events are due. */
  wake(): void {
    for (const resume of this.#waiting) resume();
  }

  /** Ends what belongs to listeners that are gone. `keptFrom`: events that wait for a listener longer than events are kept are cancelled. */
  async forget(keptFrom: number): Promise<void> {
    const { store, database, table, clock, logger } = this.#parts;
    const routes = [...store.all()].filter(
      ({ target, listener }) => target.kind === "listen" || listener !== null,
    );
    if (routes.length === 0) return;
    const now = clock.now();
    for (const route of routes) {
      const { accountId, source, name } = route;
      const own = sql`account_id = ${accountId} AND source = ${source}`;
      const row = await database.get<{ listener_until: number | null }>(
        sql`SELECT listener_until FROM webhook_route_state WHERE ${own} AND name = ${name}`,
      );
      const isGone = row?.listener_until != null && row.listener_until < now;
      if (isGone && route.target.kind !== "listen") {
        await store.release(route, now);
        await this.#forgetConnection(accountId, route.listener ?? "");
        logger.info(
          { source, route: name, listener: route.listener },
          "a route returns to its target: its listener is gone",
        );
      } else if (isGone && route.origin === "api") {
        await store.delete(route);
        await this.#forgetConnection(accountId, name);
      } else if (route.target.kind === "listen")
        await database.transaction(
          (tx) =>
            table.cancel(
              tx,
              sql`${own} AND route = ${name} AND received_at < ${keptFrom}`,
              "no listener has taken it in time",
            ),
          EVENT_SCOPE,
        );
    }
  }

  close(): void {
    this.#closed.abort();
  }

  #sourcesOf(accountId: string, names: readonly string[] | undefined): readonly string[] {
    const { sources } = this.#parts;
    const own = [...sources.values()].filter((source) => source.accountId === accountId);
    if (names === undefined) {
      const ready = own.filter(({ keys, scheme }) => keys.length > 0 || scheme.needsNoSecret === true);
      if (ready.length === 0)
        throw new SignalboxError("invalid_request", { message: "No source of the account has a secret" });
      return ready.map(({ name }) => name);
    }
    for (const name of names)
      if (!own.some((source) => source.name === name))
        throw new SignalboxError("not_found", { message: `There is no source ${name}` });
    return names;
  }

  async #listen(
    id: { readonly accountId: string; readonly source: string; readonly name: string },
    { when, since }: ListenerWish,
    now: number,
  ): Promise<number> {
    const { store, table, database, listed } = this.#parts;
    const before = store.byKey(JSON.stringify([id.accountId, id.source, id.name]));
    if (before !== undefined && before.target.kind !== "listen")
      throw new SignalboxError("conflict", {
        message: `The source ${id.source} has a route ${id.name} that is none of a listener; choose another name`,
      });
    // A route of the configuration file is as it is there.
    if (before?.origin !== "file") {
      const isSame = before !== undefined && JSON.stringify(before.shown["when"]) === JSON.stringify(when);
      if (!isSame) await store.put(id, { to: { listen: true }, ...(when === undefined ? {} : { when }) });
    }
    await this.#renew([store.find(id)], now);
    if (since === undefined) return 0;
    const route = store.find(id);
    await database.transaction(
      (tx) =>
        table.cancel(
          tx,
          sql`account_id = ${id.accountId} AND source = ${id.source} AND route = ${id.name} AND received_at < ${since}`,
          "it is older than the listener asks for",
        ),
      EVENT_SCOPE,
    );
    let notKept = 0;
    for await (const { deliveries, withoutBody } of listed.since(id, since, MAX_BACKFILL)) {
      await this.#parts.copy(deliveries);
      notKept += withoutBody;
    }
    await table.addMissing(id, since, MAX_BACKFILL, (delivery) => this.#parts.toEvent(route, delivery, now));
    return notKept;
  }

  async *#deliver(
    accountId: string,
    name: string,
    { max, isSigned }: StreamOptions,
    signal: AbortSignal,
  ): AsyncGenerator<string, void, undefined> {
    const { clock, table } = this.#parts;
    yield ": listening\n\n";
    const key = keyOf(accountId, name);
    const connection = randomUUID();
    await this.#claims.run(key, async () => {
      if (signal.aborted) return;
      await this.#connect(accountId, name, connection);
      // The results of what an earlier connection received will not be reported.
      await table.releaseClaims(this.routesOf(accountId, name), clock.now());
    });
    let renewedAt = Number.NEGATIVE_INFINITY;
    let sentAt = performance.now();
    while (!signal.aborted) {
      const routes = this.routesOf(accountId, name);
      if (routes.length === 0) return;
      if (performance.now() - renewedAt >= RENEW_MS) {
        await this.#renew(routes, clock.now());
        renewedAt = performance.now();
      }
      // Registered before the look: what becomes due in between is not missed.
      const woken = this.#nextWake(signal);
      const claimed = await this.#claims.run(key, () => this.#claim(routes, max, signal));
      const unsent = new Set(claimed);
      try {
        if (!(await this.#isConnected(accountId, name, connection))) return;
        for (const event of claimed) {
          const frame = await this.#frame(event, isSigned);
          if (signal.aborted) return;
          unsent.delete(event);
          if (frame !== null) yield frame;
          sentAt = performance.now();
        }
      } finally {
        await table.unclaim([...unsent], clock.now());
      }
      if (claimed.length > 0) continue;
      await woken;
      if (performance.now() - sentAt < PING_MS) continue;
      yield "event: ping\ndata: {}\n\n";
      sentAt = performance.now();
    }
  }

  /** From now on, connections of other nodes send nothing that they have not claimed before. */
  async #connect(accountId: string, name: string, connection: string): Promise<void> {
    await this.#parts.database.transaction(
      (tx) =>
        tx.run(
          sql`INSERT INTO webhook_listener (account_id, name, connection) VALUES (${accountId}, ${name}, ${connection})
              ON CONFLICT (account_id, name) DO UPDATE SET connection = excluded.connection`,
        ),
      CONNECTION_SCOPE,
    );
  }

  /** False when a newer connection has taken its place. */
  async #isConnected(accountId: string, name: string, connection: string): Promise<boolean> {
    const row = await this.#parts.database.get<{ connection: string }>(
      sql`SELECT connection FROM webhook_listener WHERE account_id = ${accountId} AND name = ${name}`,
    );
    return row?.connection === connection;
  }

  /** Unless the listener still has a route. */
  async #forgetConnection(accountId: string, name: string): Promise<void> {
    if (this.routesOf(accountId, name).length > 0) return;
    await this.#parts.database.transaction(
      (tx) => tx.run(sql`DELETE FROM webhook_listener WHERE account_id = ${accountId} AND name = ${name}`),
      CONNECTION_SCOPE,
    );
  }

  /** Events that were claimed and not sent are due again; if they cannot be released, they are when their claims end. */
  #finish(frames: AsyncGenerator<string, void, undefined>): void {
    frames
      .return()
      .catch((err: unknown) =>
        this.#parts.logger.warn({ err }, "events of a listener that is gone are late"),
      );
  }

  /** Resolves with the next wake, after `LOOK_MS`, or when the stream ends. */
  #nextWake(signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const resume = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", resume);
        this.#waiting.delete(resume);
        resolve();
      };
      const timer = setTimeout(resume, LOOK_MS).unref();
      signal.addEventListener("abort", resume);
      this.#waiting.add(resume);
    });
  }

  async #claim(routes: readonly Route[], max: number, signal: AbortSignal): Promise<RoutedEvent[]> {
    const { table, clock } = this.#parts;
    if (signal.aborted) return [];
    const now = clock.now();
    const active = routes.filter(({ pause }) => pause === null);
    if ((await table.countDue(active, now)) === 0) return [];
    let room = max - (await table.countClaimed(active, now));
    const claimed: RoutedEvent[] = [];
    for (const route of active) {
      if (room <= 0) break;
      const options = { now, until: now + CLAIM_MS, limit: room, node: null, isOrdered: route.isOrdered };
      const found = await table.claim(route, options);
      room -= found.length;
      claimed.push(...found);
    }
    claimed.sort((a, b) => (a.id < b.id ? -1 : 1));
    if (!signal.aborted) return claimed;
    await table.unclaim(claimed, clock.now());
    return [];
  }

  async #frame(event: RoutedEvent, isSigned: boolean): Promise<string | null> {
    const { table, sealing, sources, clock } = this.#parts;
    const delivery = await table.delivery(event.delivery);
    if (delivery === undefined) return null;
    const headers = {
      ...delivery.headers,
      ...openHeaders(sealing, delivery),
      // The list of deliveries, from which a copy is, keeps no signatures.
      ...(isSigned || delivery.sealedHeaders === null
        ? signAgain(sources.get(event.source), delivery, clock.now())
        : {}),
    };
    const frame = {
      event: event.id,
      attempt: event.attempts,
      source: event.source,
      route: event.name,
      delivery: delivery.id,
      type: delivery.type,
      title: delivery.title,
      entity: delivery.entity,
      received_at: new Date(delivery.receivedAt).toISOString(),
      path: delivery.target,
      headers,
      body: Buffer.from(delivery.body).toString("base64"),
    };
    return `event: delivery\ndata: ${JSON.stringify(frame)}\n\n`;
  }

  async #renew(routes: readonly Route[], now: number): Promise<void> {
    const { database } = this.#parts;
    await database.transaction(
      async (tx) => {
        for (const { accountId, source, name, target } of routes) {
          const until = now + (target.kind === "listen" ? KEEP_MS : LEASE_MS);
          await tx.run(
            sql`INSERT INTO webhook_route_state (account_id, source, name, listener_until) VALUES (${accountId}, ${source}, ${name}, ${until})
                ON CONFLICT (account_id, source, name) DO UPDATE SET listener_until = excluded.listener_until`,
          );
        }
      },
      { scope: "webhook_route_state", isConcurrent: true },
    );
  }
}

function keyOf(accountId: string, name: string): string {
  return JSON.stringify([accountId, name]);
}

/** None if only the vendor can sign. */
function signAgain(
  source: Source | undefined,
  delivery: StoredDelivery,
  now: number,
): Record<string, string> {
  const secret = source?.secrets[0]?.reveal();
  if (source === undefined || secret === undefined) return {};
  try {
    const { deliveryId, target } = delivery;
    return source.scheme.sign({ secret, body: Buffer.from(delivery.body), now, deliveryId, url: target })
      .headers;
  } catch {
    return {};
  }
}

function toRecord(
  event: RoutedEvent,
  { url, status, durationMs, headers, body }: ListenerResult,
  error: string | null,
  now: number,
): AttemptRecord {
  return {
    id: ulid(now),
    accountId: event.accountId,
    event: event.id,
    number: event.attempts,
    cause: event.cause,
    startedAt: now - durationMs,
    durationMs,
    outcome: error === null ? "delivered" : "failed",
    status,
    error,
    request: { method: "POST", url, headers: {} },
    responseHeaders: status === null ? null : visibleHeaders(headers),
    response: status === null ? null : body,
  };
}
