/**
 * The routes of sources, put together: what is stored when a delivery arrives, who attempts what, replays and retention.
 * See docs/decisions/0325.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Registry } from "prom-client";
import type { AgentDeliveries, DeliveryOutcome } from "../../agents/index.ts";
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { Clock } from "../../core/clock.ts";
import { LoopShare } from "../../core/loop-share.ts";
import { repeat, type Repetition } from "../../core/repeat.ts";
import type { Sealing } from "../../core/sealing.ts";
import { SharedClock } from "../../core/shared-clock.ts";
import { rawSql, sql } from "../../core/sql.ts";
import { ulid, ulidFloor } from "../../core/ulid.ts";
import type { Database, Queryable } from "../../database/database.ts";
import type { SharedSettings } from "../../database/shared-settings.ts";
import type { RequestSender } from "../../outgoing/index.ts";
import { LabelledCounter, LabelledHistogram, registerGauge } from "../../telemetry/instruments.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { EntityClaims } from "../entity-claims.ts";
import { toInstanceName } from "../entity-names.ts";
import type { LateDelivery } from "../late-delivery-table.ts";
import { parsePayload } from "../read-event.ts";
import type { SentHeaders } from "../signed-again.ts";
import type { Environment, Source } from "../source.ts";
import type { VerifiedDelivery } from "../sources/index.ts";
import { Arrivals, partsOf, toEvent } from "./arrivals.ts";
import { openHeaders } from "./attempt-url.ts";
import { Dispatcher, type RoutingNodes } from "./dispatcher.ts";
import type { RoutedEvent, StoredDelivery } from "./event-record.ts";
import { EventSearch, type StateContext } from "./event-search.ts";
import { EVENT_SCOPE, EventTable } from "./event-table.ts";
import { Examples } from "./examples.ts";
import { Issues } from "./issues.ts";
import { ListedDeliveries, type ListedDeliveriesParts } from "./listed-deliveries.ts";
import { Listeners } from "./listeners.ts";
import { QueueFigures } from "./queue-figures.ts";
import { createParts, type DeliveryParts, findMismatch } from "./parts.ts";
import { type ReceivedRequest, readArrivals } from "./read-arrivals.ts";
import { Replays } from "./replays.ts";
import type { Route } from "./route.ts";
import { RouteStore } from "./route-store.ts";
import type { SourceRoutes } from "./source-routes.ts";

const PRUNE_MS = 60_000;
/** In one statement: some milliseconds. */
const PRUNED_ROWS = 200;
const REPLAY_LOOK_MS = 2000;
const FORGET_MS = 15_000;
/** As often as Prometheus usually reads. */
const FIGURES_MS = 15_000;
const DAY_MS = 24 * 60 * 60 * 1000;

export interface RoutingParts {
  /** With the audit log, for settings. */
  readonly database: Database;
  /** Without it, for events. */
  readonly plainDatabase: Database;
  readonly settings: SharedSettings;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly sealing: Sealing;
  readonly registry: Registry;
  readonly requests: RequestSender;
  readonly alertFeed: AlertFeedSlot;
  readonly sources: ReadonlyMap<string, Source>;
  readonly environment: Environment;
  readonly agents: Pick<AgentDeliveries, "hasAgent">;
  readonly claims: EntityClaims;
  readonly log: ListedDeliveriesParts["log"];
  /** Null if there is no other node. */
  readonly nodes: RoutingNodes | null;
  readonly mayBePrivate: boolean;
  readonly keepDays: number;
  readonly maxStoredBytes: number;
  /** Of the event loop, for attempts. */
  readonly share?: LoopShare;
  /** Delivers to the instance, as a delivery whose sender was answered before. */
  deliver(source: Source, delivery: LateDelivery, sent: SentHeaders): Promise<DeliveryOutcome>;
}

export class Routing {
  readonly routes: RouteStore;
  readonly table: EventTable;
  readonly search: EventSearch;
  readonly replays: Replays;
  readonly examples: Examples;
  readonly dispatcher: Dispatcher;
  readonly listeners: Listeners;
  readonly issues: Issues;
  readonly clock: Clock;
  readonly #listed: ListedDeliveries;
  readonly #parts: RoutingParts;
  readonly #arrivals: Arrivals;
  readonly #figures: QueueFigures;
  #repetitions: Repetition[] = [];

  constructor(parts: RoutingParts) {
    this.#parts = parts;
    const { plainDatabase: database, sealing, logger, nodes } = parts;
    const shared = nodes === null ? null : new SharedClock(parts.clock);
    const clock = shared ?? parts.clock;
    this.clock = clock;
    this.table = new EventTable(database);
    this.search = new EventSearch(database);
    this.#listed = new ListedDeliveries({ log: parts.log, table: this.table });
    this.examples = new Examples(parts.database, clock);
    this.issues = new Issues(database, clock);
    this.routes = new RouteStore({
      ...parts,
      clock,
      hasAgent: (agent, account) => parts.agents.hasAgent(agent, account),
      onChanged: () => this.dispatcher.follow(),
      cancelEvents: async (tx, { accountId, source, name }, reason) => {
        await this.table.cancel(
          tx,
          sql`account_id = ${accountId} AND source = ${source} AND route = ${name}`,
          reason,
        );
      },
    });
    const attempts = new LabelledCounter(parts.registry, {
      name: "signalbox_webhook_attempts_total",
      help: "Attempts to deliver events of webhook routes, by source and outcome.",
      labels: ["source", "outcome"],
    });
    const durations = new LabelledHistogram(
      parts.registry,
      {
        name: "signalbox_webhook_attempt_seconds",
        help: "Time of attempts to deliver events of webhook routes, by source.",
        labels: ["source"],
      },
      [0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30],
    );
    this.dispatcher = new Dispatcher({
      ...parts,
      share: parts.share ?? new LoopShare(),
      database,
      clock,
      table: this.table,
      store: this.routes,
      random: Math.random,
      ...(shared === null ? {} : { adjustClock: () => adjust(shared, database) }),
      recent: (id) => this.#arrivals.recent(id),
      deliverToAgent: (agent, event, delivery) => this.#deliverToAgent(agent, event, delivery),
      onAttempt: (route, { record }) => {
        attempts.add(1, route.source, record.outcome);
        durations.observe(record.durationMs / 1000, route.source);
      },
      onDue: () => this.listeners.wake(),
    });
    this.listeners = new Listeners({
      database,
      table: this.table,
      store: this.routes,
      clock,
      logger,
      sealing,
      sources: parts.sources,
      onAttempt: (route, outcome) => attempts.add(1, route.source, outcome),
      listed: this.#listed,
      copy: (deliveries) => this.#arrivals.copy(deliveries),
      wake: (keys) => this.dispatcher.wake(keys),
      toEvent: (route, delivery, now) => {
        const seen = this.partsOf(delivery);
        return { ...toEvent(route, delivery, seen, seen.body, now), id: ulid(now) };
      },
    });
    this.#figures = new QueueFigures({
      database,
      clock,
      registry: parts.registry,
      runs: (key) => this.dispatcher.runs(key),
    });
    registerGauge(
      parts.registry,
      { name: "signalbox_webhook_route_attempts", help: "Attempts of webhook routes that run." },
      () => this.dispatcher.running,
    );
    this.#arrivals = new Arrivals({
      table: this.table,
      clock,
      sealing,
      maxStoredBytes: parts.maxStoredBytes,
      onStored: (keys) => this.dispatcher.wake(keys),
    });
    this.replays = new Replays({
      database,
      table: this.table,
      search: this.search,
      clock,
      logger,
      node: () => nodes?.self ?? null,
      context: (accountId) => this.stateContext(accountId),
      isTakenNow: (tx, event) => this.#isTakenNow(tx, event),
      wake: (keys) => this.dispatcher.wake(keys),
    });
  }

  /** Before deliveries arrive. */
  async load(): Promise<void> {
    await this.routes.load();
    await this.#arrivals.measure();
  }

  /** Begins attempts. */
  async start(): Promise<void> {
    const parts = this.#parts;
    const { logger, nodes } = parts;
    await this.dispatcher.start();
    this.replays.run();
    this.#repetitions.push(
      repeat(
        PRUNE_MS,
        () => this.#prune(),
        (err) => logger.warn({ err }, "ended webhook events cannot be deleted; trying again"),
      ),
      repeat(
        FIGURES_MS,
        () => (this.routes.hasRoutes ? this.#figures.read() : undefined),
        () => undefined,
      ),
      repeat(
        FORGET_MS,
        () => this.listeners.forget(this.clock.now() - parts.keepDays * DAY_MS),
        (err) => logger.warn({ err }, "listeners that are gone cannot be removed; trying again"),
      ),
    );
    if (nodes !== null)
      this.#repetitions.push(
        repeat(
          REPLAY_LOOK_MS,
          () => this.replays.run(),
          () => undefined,
        ),
      );
  }

  async stop(): Promise<void> {
    this.listeners.close();
    await Promise.all(this.#repetitions.map((repetition) => repetition.stop()));
    await this.replays.stop();
    await this.dispatcher.stop();
  }

  /** Undefined for a source without routes. */
  of(source: Source): SourceRoutes | undefined {
    return this.routes.of(source);
  }

  /** Resolves when the delivery is durable for all routes; true if it was stored before. */
  async store(request: ReceivedRequest, { routes }: SourceRoutes): Promise<boolean> {
    return this.#arrivals.store(readArrivals(request), routes);
  }

  stateContext(accountId: string): StateContext {
    const paused = [...this.routes.all()].filter(
      (route) => route.accountId === accountId && route.pause !== null,
    );
    return { now: this.clock.now(), paused };
  }

  /** Stored for routes, or listed because an agent received it at once; undefined also if its body was not kept. */
  async findDelivery(accountId: string, id: string): Promise<StoredDelivery | undefined> {
    return (await this.table.ownDelivery(accountId, id)) ?? (await this.#listed.find(accountId, id));
  }

  /** The parts of a delivery, as filters see them. */
  partsOf(delivery: StoredDelivery): DeliveryParts {
    const source = this.#parts.sources.get(delivery.source);
    if (source === undefined) throw new SignalboxError("webhook_unknown_source");
    const { payload } = parsePayload(
      source.kind,
      delivery.contentType ?? undefined,
      Buffer.from(delivery.body),
    );
    return partsOf({ ...delivery, headers: this.#headersOf(delivery) }, payload);
  }

  /** All headers of the sender. */
  #headersOf(delivery: StoredDelivery): Readonly<Record<string, string>> {
    return { ...delivery.headers, ...openHeaders(this.#parts.sealing, delivery) };
  }

  async #isTakenNow(tx: Queryable, event: RoutedEvent): Promise<boolean> {
    const route = this.routes.byKey(JSON.stringify([event.accountId, event.source, event.name]));
    const delivery = await this.table.deliveryIn(tx, event.delivery);
    if (route === undefined || delivery === undefined) return false;
    return findMismatch(route.filters, this.partsOf(delivery)) === null;
  }

  async #deliverToAgent(
    agent: string,
    event: RoutedEvent,
    delivery: StoredDelivery,
  ): Promise<DeliveryOutcome> {
    const { sources, claims } = this.#parts;
    const { accountId, entity } = delivery;
    const source = sources.get(delivery.source);
    if (source === undefined) throw new SignalboxError("webhook_unknown_source");
    if (entity === null || toInstanceName(entity, source.entityForm) === null)
      throw new SignalboxError("webhook_missing_entity");
    const named = { text: entity, isExact: delivery.isEntityExact };
    const instance = await claims.resolve({ account: accountId, agent }, named, source.entityForm);
    const { deliveryId } = delivery;
    // Its instance may have to be opened, after a wait for the database that has ended the step of the attempt.
    await this.dispatcher.begin(accountId);
    return this.#parts.deliver(
      source,
      {
        ...delivery,
        agent,
        instance,
        // An agent that has handled the event would treat it as a duplicate.
        deliveryId: event.repeat === null ? deliveryId : `${deliveryId}#replay-${event.repeat}`,
      },
      { read: () => this.#headersOf(delivery), isWhole: delivery.batch === null },
    );
  }

  async #prune(): Promise<void> {
    const { nodes, keepDays, plainDatabase } = this.#parts;
    // In a cluster one node deletes.
    const first = nodes?.members.map(({ inc }) => inc).sort()[0];
    if ((nodes === null || first === nodes.self) && (await this.table.hasDeliveries())) {
      const before = this.clock.now() - keepDays * DAY_MS;
      while ((await this.table.prune(before, PRUNED_ROWS)) >= PRUNED_ROWS);
      await this.issues.prune(before);
      await plainDatabase.transaction(
        (tx) =>
          tx.run(sql`DELETE FROM webhook_replay WHERE state <> 'running' AND id < ${ulidFloor(before)}`),
        EVENT_SCOPE,
      );
    }
    await this.#arrivals.measure();
  }
}

/** Whether the filters of a route match. */
export function isTaken(route: Route, { payload, headers }: VerifiedDelivery, target: string): boolean {
  return (
    route.filters.length === 0 || findMismatch(route.filters, createParts(payload, headers, target)) === null
  );
}

async function adjust(clock: SharedClock, database: Database): Promise<void> {
  const sentAt = clock.local.now();
  const row = await database.get<{ now: number }>(
    rawSql("SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now"),
  );
  if (row !== undefined) clock.adjust(sentAt, row.now);
}
