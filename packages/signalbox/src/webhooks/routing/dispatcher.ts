/**
 * Runs the routes of this process: a runner for each route that it owns, the ends of their attempts, and what follows for the route.
 *
 * Invariants:
 * 1. The end of an attempt is recorded before its place is free. If it cannot be, the event is attempted again when its claim ends, with the same id.
 * 2. No request begins later than its claim allows: a process that was stopped in between leaves the event to the next claim.
 * 3. Attempts of all routes begin in steps of one `LoopShare`, some together, except for a few in each iteration of the event loop: a route that
 *    resumes, or has the events of an outage, delays other work by some milliseconds (decision 0315).
 * 4. A receiver that answers 410, or only fails for `FAILING_MS`, pauses its route. The log says so and alerts are fed; events are kept.
 */
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { OtherNodes } from "../../contracts/other-nodes.ts";
import type { Clock } from "../../core/clock.ts";
import type { LoopShare } from "../../core/loop-share.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import { retry } from "../../core/retry.ts";
import { SharedPlaces } from "../../core/shared-pool.ts";
import { sql } from "../../core/sql.ts";
import { WriteTogether } from "../../core/write-together.ts";
import type { Database } from "../../database/database.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type AttemptEnd, attemptEvent, type AttemptParts } from "./attempt-event.ts";
import type { RoutedEvent, StoredDelivery } from "./event-record.ts";
import type { EventTable } from "./event-table.ts";
import type { Issue } from "./issues.ts";
import type { PauseReason, Route } from "./route.ts";
import { RouteOwners } from "./route-owners.ts";
import { RouteRunner } from "./route-runner.ts";
import type { RouteStore } from "./route-store.ts";

/** Attempts of all routes at the same time. */
const MAX_ATTEMPTS = 512;
/**
 * Attempts that begin at once in an iteration of the event loop, and those that share a step: a millisecond at most. One by one they would end one by one,
 * and each end would be a transaction of its own: a sixth more processor time.
 */
const TOGETHER = 8;
/** How often a node of a cluster looks for routes without an owner, and for events that other nodes have stored. */
const LOOK_MS = 1000;
/** As long as the public senders try. */
const FAILING_MS = 5 * 24 * 60 * 60 * 1000;
const RECORD_RETRY = { maxAttempts: 5, baseDelayMs: 500, maxDelayMs: 5000 };
/** More than a usual receiver needs. */
const STOP_MS = 3000;
const WAKE = "webhooks/wake";

export type RoutingNodes = OtherNodes & Pick<NodeNetwork, "self" | "members" | "onChange" | "call">;

export interface DispatcherParts extends Omit<AttemptParts, "signal"> {
  readonly database: Database;
  readonly table: EventTable;
  readonly store: RouteStore;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly alertFeed: AlertFeedSlot;
  readonly share: LoopShare;
  /** Null for a process that is alone. */
  readonly nodes: RoutingNodes | null;
  /** In a cluster: reads the clock of PostgreSQL, by which claims and leases are compared. */
  adjustClock?(): Promise<void>;
  /** The delivery, if it is in memory. */
  recent(id: string): StoredDelivery | undefined;
  onAttempt(route: Route, end: AttemptEnd): void;
  /** Some events are due, perhaps for a listener. */
  onDue(): void;
}

export class Dispatcher {
  readonly #parts: DispatcherParts;
  readonly #places = new SharedPlaces(MAX_ATTEMPTS);
  readonly #owners: RouteOwners | null;
  readonly #runners = new Map<string, RouteRunner>();
  /** Since when the receiver of a route only fails. */
  readonly #failingSince = new Map<string, number>();
  readonly #stopping = new AbortController();
  readonly #attempts = new Set<Promise<void>>();
  readonly #ends = new WriteTogether((ends: readonly AttemptEnd[]) => this.#record(ends));
  #looks: Repetition | null = null;
  #looking: Promise<void> = Promise.resolve();
  #ignoreNodes: () => void = () => undefined;
  #isStarted = false;
  /** Attempts that began at once in this iteration of the event loop. */
  #begun = 0;
  /** By account, the last group of attempts whose step has not begun. */
  readonly #groups = new Map<string, { readonly step: Promise<void>; size: number }>();

  constructor(parts: DispatcherParts) {
    this.#parts = parts;
    const { nodes, database, clock } = parts;
    this.#owners = nodes === null ? null : new RouteOwners({ database, clock, nodes });
    nodes?.serve(WAKE, (payload) => {
      for (const key of JSON.parse(payload.toString()) as string[]) this.#runners.get(key)?.wake();
      return Promise.resolve(new Uint8Array());
    });
  }

  /** Whether this process makes the attempts of the route. */
  runs(key: string): boolean {
    return this.#runners.has(key);
  }

  /** Attempts that run. */
  get running(): number {
    return this.#places.used;
  }

  async start(): Promise<void> {
    const { table, clock, nodes, logger } = this.#parts;
    if (nodes === null) await table.releaseAll(clock.now());
    this.#isStarted = true;
    await this.#readFailing();
    await this.#lookForRoutes();
    if (nodes === null) return;
    // A failure is reported by the next look.
    this.#ignoreNodes = nodes.onChange(() => void this.#lookForRoutes().catch(() => undefined));
    this.#looks = repeat(
      LOOK_MS,
      () => this.#lookForRoutes(),
      (err) => logger.warn({ err }, "routes of webhooks cannot be read; trying again"),
    );
  }

  /** Attempts that run have a little time to end. Then they are broken off, and their events are due for the next process, or another node. */
  async stop(): Promise<void> {
    this.#isStarted = false;
    this.#ignoreNodes();
    await this.#looks?.stop();
    await this.#looking;
    for (const runner of this.#runners.values()) runner.stop();
    const timer = setTimeout(() => this.#stopping.abort(), STOP_MS);
    await Promise.allSettled(this.#attempts);
    clearTimeout(timer);
    // The other nodes take the routes when this one has left.
    await this.#owners?.release().catch(() => undefined);
  }

  /** The routes or their settings have changed. */
  follow(): void {
    if (!this.#isStarted) return;
    // At once: what arrives after a pause was answered, at any node, is not attempted. Who runs what follows later.
    for (const [key, runner] of this.#runners) {
      const route = this.#runnable(key);
      if (route !== undefined) runner.follow(route);
      else this.#end(key, runner);
    }
    this.#lookForRoutes().catch((err: unknown) =>
      this.#parts.logger.warn({ err }, "changed routes of webhooks cannot be run yet"),
    );
  }

  /** Events of these routes are due. */
  wake(keys: Iterable<string>): void {
    this.#parts.onDue();
    const elsewhere = new Map<string, string[]>();
    for (const key of keys) {
      const runner = this.#runners.get(key);
      if (runner !== undefined) runner.wake();
      else {
        const owner = this.#owners?.ownerOf(key);
        if (owner !== undefined) elsewhere.set(owner, [...(elsewhere.get(owner) ?? []), key]);
      }
    }
    for (const [owner, own] of elsewhere) {
      // An owner that is not told finds the events with its next look.
      this.#parts.nodes?.call(owner, WAKE, Buffer.from(JSON.stringify(own))).catch(() => undefined);
    }
  }

  /** One after the other: an older view of the owners must not replace a newer one. */
  #lookForRoutes(): Promise<void> {
    const look = this.#looking.then(() => this.#followRoutes());
    // The caller receives the error.
    this.#looking = look.catch(() => undefined);
    return look;
  }

  async #followRoutes(): Promise<void> {
    const { store, adjustClock } = this.#parts;
    // Without routes a cluster pays nothing for them.
    if (!store.hasRoutes && this.#runners.size === 0) return;
    await adjustClock?.();
    const run = [...store.all()].filter(isRunnable);
    const owned = (await this.#owners?.look(run)) ?? new Set(run.map(({ key }) => key));
    if (!this.#isStarted) return;
    for (const [key, runner] of this.#runners) if (!owned.has(key)) this.#end(key, runner);
    for (const key of owned) {
      // It may have changed since.
      const route = this.#runnable(key);
      const runner = this.#runners.get(key);
      if (route === undefined) continue;
      if (runner === undefined) await this.#run(route);
      else runner.follow(route);
    }
  }

  #runnable(key: string): Route | undefined {
    const route = this.#parts.store.byKey(key);
    return route !== undefined && isRunnable(route) ? route : undefined;
  }

  #end(key: string, runner: RouteRunner): void {
    runner.stop();
    this.#runners.delete(key);
  }

  async #run(route: Route): Promise<void> {
    const { table, clock, logger, nodes } = this.#parts;
    const runner = new RouteRunner(
      {
        table,
        clock,
        logger,
        node: () => nodes?.self ?? null,
        places: this.#places.shareOf(route.accountId),
        attempt: (current, event, until) => this.#track(this.#attempt(current, event, until)),
      },
      route,
    );
    this.#runners.set(route.key, runner);
    if (nodes === null) {
      runner.wake();
      return;
    }
    await this.#readFailing();
    await runner.takeOver();
  }

  /** Resolves when an attempt, or the part of it that follows a wait, may begin. */
  async begin(accountId: string): Promise<void> {
    if (this.#begun < TOGETHER) {
      if (this.#begun === 0) setImmediate(() => (this.#begun = 0));
      this.#begun += 1;
      return;
    }
    const last = this.#groups.get(accountId);
    const group = last === undefined || last.size === TOGETHER ? this.#newGroup(accountId) : last;
    group.size += 1;
    await group.step;
  }

  #newGroup(accountId: string) {
    const step = this.#parts.share.step(accountId).then(() => {
      if (this.#groups.get(accountId) === group) this.#groups.delete(accountId);
    });
    const group = { step, size: 0 };
    this.#groups.set(accountId, group);
    return group;
  }

  async #track(attempt: Promise<void>): Promise<void> {
    this.#attempts.add(attempt);
    await attempt.finally(() => this.#attempts.delete(attempt));
  }

  /** Never rejects. */
  async #attempt(route: Route, event: RoutedEvent, until: number): Promise<void> {
    const { table, clock, logger } = this.#parts;
    const about = { source: route.source, route: route.name, event: event.id };
    try {
      await this.begin(route.accountId);
      const delivery = this.#parts.recent(event.delivery) ?? (await table.delivery(event.delivery));
      if (delivery === undefined) {
        await table.end([{ ...LOST, id: event.id, number: event.attempts }], [], clock.now());
        return;
      }
      const latest = until - (route.target.kind === "url" ? route.target.timeoutMs : 0);
      if (clock.now() > latest || this.#stopping.signal.aborted) return;
      const end = await attemptEvent(
        { ...this.#parts, signal: this.#stopping.signal },
        route,
        event,
        delivery,
      );
      if (end === null) {
        const due = { state: "waiting", reason: null, dueAt: clock.now(), counts: false } as const;
        await table.end([{ ...due, id: event.id, number: event.attempts }], [], clock.now());
        return;
      }
      if (end.isGone) await this.#pause(route, "gone");
      await this.#ends.add(end);
      this.#parts.onAttempt(route, end);
      if (end.end.state === "failed") {
        logger.debug(
          { ...about, reason: end.end.reason },
          "all attempts to deliver a webhook event have failed",
        );
        this.#parts.alertFeed.current?.delivery(route.accountId, route.source, true);
      }
      if (end.hasSucceeded !== null && !end.isGone) await this.#followHealth(route, end.hasSucceeded);
    } catch (err) {
      // The event is found again when its claim ends.
      logger.error(
        { ...about, err },
        "the end of an attempt could not be recorded; the event is attempted again",
      );
    }
  }

  async #record(ends: readonly AttemptEnd[]): Promise<void> {
    const { table, clock } = this.#parts;
    const opened = await retry(
      () =>
        table.end(
          ends.map(({ end }) => end),
          ends.map(({ record }) => record),
          clock.now(),
        ),
      RECORD_RETRY,
    );
    for (const issue of opened) this.#report(issue);
  }

  /** Once for all events that fail for the cause. */
  #report({ id, accountId, source, name, cause, sample }: Issue): void {
    const { logger, alertFeed } = this.#parts;
    logger.warn(
      { account: accountId, source, route: name, issue: id, cause, event: sample },
      "all attempts to deliver a webhook event have failed; further events that fail for this cause are counted in the issue",
    );
    alertFeed.current?.issueOpened(accountId, source);
  }

  async #followHealth(route: Route, hasSucceeded: boolean): Promise<void> {
    const since = this.#failingSince.get(route.key);
    const now = this.#parts.clock.now();
    if (hasSucceeded) {
      if (since === undefined) return;
      this.#failingSince.delete(route.key);
      await this.#writeFailing(route, null);
    } else if (since === undefined) {
      this.#failingSince.set(route.key, now);
      await this.#writeFailing(route, now);
    } else if (now - since >= FAILING_MS) {
      this.#failingSince.delete(route.key);
      await this.#pause(route, "failing");
    }
  }

  async #pause(route: Route, because: PauseReason): Promise<void> {
    const { store, logger, alertFeed } = this.#parts;
    const known = store.byKey(route.key);
    if (known === undefined || known.pause !== null) return;
    await store.pause(route, because);
    logger.error(
      { account: route.accountId, source: route.source, route: route.name },
      because === "gone"
        ? "a webhook route is paused: its receiver answered 410 Gone; its events are kept until it is resumed"
        : "a webhook route is paused: its receiver has only failed for five days; its events are kept until it is resumed",
    );
    alertFeed.current?.routePaused(route.accountId, route.source);
  }

  async #writeFailing({ accountId, source, name }: Route, since: number | null): Promise<void> {
    await this.#parts.database.transaction(
      (tx) =>
        tx.run(
          sql`INSERT INTO webhook_route_state (account_id, source, name, failing_since) VALUES (${accountId}, ${source}, ${name}, ${since})
              ON CONFLICT (account_id, source, name) DO UPDATE SET failing_since = excluded.failing_since`,
        ),
      { scope: "webhook_route_state", isConcurrent: true },
    );
  }

  async #readFailing(): Promise<void> {
    const rows = await this.#parts.database.all<{
      account_id: string;
      source: string;
      name: string;
      failing_since: number;
    }>(
      sql`SELECT account_id, source, name, failing_since FROM webhook_route_state WHERE failing_since IS NOT NULL`,
    );
    for (const row of rows)
      this.#failingSince.set(JSON.stringify([row.account_id, row.source, row.name]), row.failing_since);
  }
}

/** Listeners take the events of the others themselves. */
function isRunnable({ target }: Route): boolean {
  return target.kind !== "listen";
}

const LOST = {
  state: "failed",
  reason: "the delivery is not stored any more",
  dueAt: null,
  counts: true,
} as const;
