/** Who attempts what and when: on both database engines, with a clock that the tests move and a sender of requests that they answer. */
import { setImmediate as nextIteration, setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { ENGINES, type OpenedDatabase } from "../../../../../test/support/engines.ts";
import { webhookKeys } from "../../config/webhook-keys.ts";
import { managedRoute } from "../../config/webhook-route-keys.ts";
import type { AlertFeed } from "../../contracts/alert-feed.ts";
import { systemClock } from "../../core/clock.ts";
import { LoopShare } from "../../core/loop-share.ts";
import { Sealing } from "../../core/sealing.ts";
import { Secret } from "../../core/secret.ts";
import { sql } from "../../core/sql.ts";
import { ulid } from "../../core/ulid.ts";
import { LocalSettings } from "../../database/shared-settings.ts";
import type { OutgoingReply, RequestSender } from "../../outgoing/index.ts";
import { DeliveryLog } from "../delivery-log.ts";
import { EntityClaims } from "../entity-claims.ts";
import { readEvent } from "../read-event.ts";
import { createSources } from "../source.ts";
import type { RoutingNodes } from "./dispatcher.ts";
import { EventSearch } from "./event-search.ts";
import { QueueFigures } from "./queue-figures.ts";
import { Routing } from "./routing.ts";

const START = 1_800_000_000_000;
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const SOURCES = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: "secret" });
const KEY = JSON.stringify(["default", "generic", "main"]);

type Sent = Parameters<RequestSender["send"]>[0];

const NO_FEED: AlertFeed = {
  call: () => undefined,
  delivery: () => undefined,
  routePaused: () => undefined,
  guardrails: () => undefined,
  issueOpened: () => undefined,
  deadLetter: () => undefined,
};

const reply = (status: number, headers: OutgoingReply["headers"] = {}): OutgoingReply => ({
  status,
  headers,
  body: Buffer.from(""),
});

/** A node as the others see it. */
class FakeNode implements RoutingNodes {
  readonly self: string;
  members: RoutingNodes["members"] = [];
  readonly #listeners = new Set<() => void>();

  constructor(self: string, members: readonly string[]) {
    this.self = self;
    this.setMembers(members);
  }

  setMembers(incs: readonly string[]): void {
    this.members = incs.map((inc) => ({ inc, name: inc, state: "up" }));
    for (const listener of this.#listeners) listener();
  }

  serve(): void {}
  askAll = () => Promise.resolve([]);
  call = () => Promise.reject(new Error("no link in this test"));

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

describe.each(ENGINES)("on %s", (engine, open) => {
  let opened: OpenedDatabase;
  let now = START;
  let sent: Sent[] = [];
  let answer: (request: Sent) => Promise<OutgoingReply> = () => Promise.resolve(reply(200));
  let started: Routing[] = [];
  const feed: { current: AlertFeed | null } = { current: null };
  const logs: string[] = [];
  const logger = pino({ level: "warn" }, { write: (line: string) => void logs.push(line) });

  beforeAll(async () => {
    opened = await open();
    await opened.database.run(
      sql`INSERT INTO account (id, name, created_at) VALUES ('default', 'default', 0) ON CONFLICT DO NOTHING`,
    );
  });
  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });
  afterEach(async () => {
    for (const routing of started) await routing.stop();
    started = [];
    sent = [];
    now = START;
    feed.current = null;
    answer = () => Promise.resolve(reply(200));
    for (const table of [
      "webhook_route",
      "webhook_route_state",
      "webhook_event",
      "webhook_attempt",
      "webhook_stored_delivery",
      "webhook_replay",
      "webhook_issue",
      "webhook_listener",
    ])
      await opened.database.run(TABLES[table as keyof typeof TABLES]);
  });

  const start = async (nodes: RoutingNodes | null = null, share = new LoopShare()): Promise<Routing> => {
    const { database } = opened;
    const routing: Routing = new Routing({
      database,
      plainDatabase: database,
      settings: new LocalSettings(database),
      // Nodes compare their claims by the clock of PostgreSQL.
      clock: nodes === null ? { now: () => now } : systemClock,
      logger,
      sealing: new Sealing(new Secret("key")),
      registry: new Registry(),
      requests: {
        send: (request) => {
          sent.push(request);
          const aborted = new Promise<never>((_resolve, reject) =>
            request.signal?.addEventListener("abort", () => reject(new Error("aborted"))),
          );
          return Promise.race([answer(request), aborted]);
        },
      },
      alertFeed: feed,
      sources: SOURCES,
      environment: {},
      agents: { hasAgent: () => true },
      claims: new EntityClaims(database, () => undefined),
      log: new DeliveryLog(database, logger, { keep: 100, onDropped: () => undefined }),
      share,
      nodes,
      mayBePrivate: true,
      keepDays: 7,
      maxStoredBytes: 1e9,
      deliver: () => Promise.resolve({ kind: "processed" }),
    });
    started.push(routing);
    await routing.load();
    await routing.start();
    return routing;
  };

  const ID = { accountId: "default", source: "generic", name: "main" };
  const put = (routing: Routing, settings: object = {}) =>
    routing.routes.put(
      ID,
      managedRoute.parse({ to: { url: "http://receiver.example/", timeoutMs: 1000 }, ...settings }),
    );
  const arrive = async (routing: Routing, payload: object = {}, entity = "e", sentId?: string) => {
    const source = SOURCES.get("generic");
    const routes = source === undefined ? undefined : routing.of(source);
    if (source === undefined || routes === undefined) throw new Error("there are no routes");
    const id = ulid(now);
    const sentPayload = { id: sentId ?? id, ...payload };
    const body = Buffer.from(JSON.stringify(sentPayload));
    const delivery = {
      headers: { "content-type": "application/json" },
      payload: sentPayload,
      json: body.toString(),
    };
    const event = readEvent(source, delivery, body, now);
    const request = { source, delivery, event, urlEntity: entity, target: "/webhooks/generic", now, id };
    return routing.store(request, routes);
  };
  const list = async (routing: Routing) =>
    (
      await routing.search.list("default", {}, routing.stateContext("default"), { limit: 10_000 })
    ).events.toReversed();
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    while (!(await isSo())) await sleep(5);
  };
  /** All events have ended or wait for a later time, and no attempt runs. */
  const idle = (routing: Routing) =>
    until(async () =>
      (await list(routing)).every(
        ({ isAttempting, dueAt }) => !isAttempting && (dueAt === null || dueAt > now),
      ),
    );

  it("a receiver that fails for two hours has the event afterwards, with one id and an attempt at each time of the plan", async () => {
    const routing = await start();
    answer = () => Promise.resolve(reply(now < START + 120 * MINUTE ? 503 : 200));
    await put(routing, { retry: { strategy: "linear", intervalMs: 10 * MINUTE, count: 20 } });
    await arrive(routing);
    for (;;) {
      await idle(routing);
      const [event] = await list(routing);
      if (event?.dueAt == null) break;
      // The jitter is at most a tenth.
      expect(event.dueAt - now).toBeGreaterThanOrEqual(10 * MINUTE);
      expect(event.dueAt - now).toBeLessThanOrEqual(11 * MINUTE);
      now = event.dueAt;
      routing.dispatcher.wake([KEY]);
    }
    const [event] = await list(routing);
    expect(event?.state).toBe("delivered");
    expect(event?.attempts).toBe(sent.length);
    expect(sent.length).toBeGreaterThanOrEqual(11);
    expect(sent.length).toBeLessThanOrEqual(14);
    expect(new Set(sent.map(({ headers }) => headers["signalbox-event-id"])).size).toBe(1);
    const attempts = await routing.table.attemptsOf("default", event?.id ?? "");
    expect(attempts.map(({ number }) => number)).toEqual(sent.map((_, i) => i + 1));
  });

  it("the waits of an exponential plan double from attempt to attempt, are at most a day, and the event fails after the last of them", async () => {
    const routing = await start();
    answer = () => Promise.resolve(reply(500));
    const waits = async (intervalMs: number, count: number) => {
      sent = [];
      await put(routing, { retry: { strategy: "exponential", intervalMs, count } });
      await arrive(routing);
      const found: number[] = [];
      for (;;) {
        await idle(routing);
        const event = (await list(routing)).at(-1);
        if (event?.dueAt == null) return { found, state: event?.state, attempts: sent.length };
        found.push(event.dueAt - now);
        now = event.dueAt;
        routing.dispatcher.wake([KEY]);
      }
    };
    const short = await waits(1000, 4);
    expect(short).toMatchObject({ state: "failed", attempts: 5 });
    // The jitter is at most a tenth.
    for (const [i, least] of [1000, 2000, 4000, 8000].entries()) {
      expect(short.found[i]).toBeGreaterThanOrEqual(least);
      expect(short.found[i]).toBeLessThanOrEqual(least * 1.1);
    }
    expect(short.found).toHaveLength(4);
    const long = await waits(20 * HOUR, 3);
    expect(long.found.slice(1)).toEqual([24 * HOUR, 24 * HOUR]);
  });

  it.each([
    [["500-599"], [500, 599], [404, 499]],
    [
      ["500-599", "!503"],
      [500, 504],
      [503, 404],
    ],
    [["!404"], [400, 500], [404]],
    [
      [">=500", 429],
      [429, 500, 599],
      [499, 428],
    ],
    [
      [">500", "<402", "<=402"],
      [501, 401, 402],
      [500, 403],
    ],
  ])("of the statuses %j are retried %j, and not %j", async (statuses, retried, others) => {
    const routing = await start();
    answer = ({ body }) =>
      Promise.resolve(reply((JSON.parse(Buffer.from(body).toString()) as { status: number }).status));
    await put(routing, { retry: { strategy: "linear", intervalMs: MINUTE, count: 1, statuses } });
    for (const status of [...retried, ...others]) await arrive(routing, { status });
    await idle(routing);
    expect((await list(routing)).map(({ state }) => state)).toEqual([
      ...retried.map(() => "waiting"),
      ...others.map(() => "failed"),
    ]);
  });

  it("an event waits for the delay of its route, and is scheduled until then", async () => {
    const routing = await start();
    await put(routing, { delay: 5 * MINUTE });
    await arrive(routing);
    const context = () => routing.stateContext("default");
    const scheduled = () => routing.search.list("default", { state: "scheduled" }, context(), { limit: 5 });
    now += 5 * MINUTE - 1;
    routing.dispatcher.wake([KEY]);
    await idle(routing);
    expect([sent.length, (await scheduled()).events.length]).toEqual([0, 1]);
    now += 1;
    routing.dispatcher.wake([KEY]);
    await until(async () => (await list(routing))[0]?.state === "delivered");
    expect(sent).toHaveLength(1);
  });

  it.each([
    ["minute", 6, 10_000],
    ["hour", 12, 5 * MINUTE],
  ] as const)("of a rate per %s, %i attempts are evenly distributed", async (per, limit, stepMs) => {
    const routing = await start();
    await put(routing, { rate: { limit, per } });
    for (let n = 0; n < 4; n++) await arrive(routing, { n });
    const counts: number[] = [];
    const look = async () => {
      routing.dispatcher.wake([KEY]);
      await until(() => sent.length > counts.length);
      await until(() => routing.dispatcher.running === 0);
      counts.push(sent.length);
    };
    // Nothing is saved up: after a long pause there is one attempt, too.
    now += 100 * stepMs;
    await look();
    for (let step = 1; step < 4; step++) {
      now += stepMs - 1;
      routing.dispatcher.wake([KEY]);
      expect(sent).toHaveLength(step);
      now += 1;
      await look();
    }
    expect(counts).toEqual([1, 2, 3, 4]);
  });

  it("the attempts of a route that resumes begin as many in an iteration of the event loop as the share of such work allows", async () => {
    let spentMs = 0;
    const routing = await start(null, new LoopShare(2, () => spentMs));
    answer = () => {
      spentMs += 1;
      return Promise.resolve(reply(200));
    };
    await put(routing, { paused: true });
    for (let n = 0; n < 64; n++) await arrive(routing, { n });
    await routing.routes.resume(ID);
    const begun: number[] = [];
    for (let before = 0; sent.length < 64; before = sent.length) {
      await nextIteration();
      if (sent.length > before) begun.push(sent.length - before);
    }
    // Eight at once and two steps; between two looks of the test there can be the end of one iteration and the beginning of the next.
    expect(Math.max(...begun)).toBeLessThanOrEqual(20);
  });

  it("figures have the number and the age of the events that wait, of the routes that run here", async () => {
    const routing = await start();
    await put(routing, { paused: true });
    for (let n = 0; n < 3; n++) await arrive(routing, { n });
    now += 90_000;
    await arrive(routing);
    const registry = new Registry();
    let isOwn = true;
    const figures = new QueueFigures({
      database: opened.database,
      clock: { now: () => now },
      registry,
      runs: (key) => isOwn && key === KEY,
    });
    await figures.read();
    const labels = '{account="default",source="generic",route="main"}';
    const text = await registry.metrics();
    expect(text).toContain(`signalbox_webhook_waiting_events${labels} 4\n`);
    expect(text).toContain(`signalbox_webhook_oldest_waiting_seconds${labels} 90\n`);
    isOwn = false;
    await figures.read();
    expect(await registry.metrics()).not.toContain(labels);
  });

  it("held events are delivered at the rate of the route when it is resumed, and not all at once", async () => {
    const routing = await start();
    await put(routing, { rate: { limit: 50, per: "second" }, paused: true });
    for (let n = 0; n < 230; n++) await arrive(routing, { n });
    expect(sent).toEqual([]);
    await routing.routes.resume(ID);
    const counts: number[] = [];
    for (let second = 0; second < 6; second++) {
      now += 1000;
      routing.dispatcher.wake([KEY]);
      await until(() => sent.length >= Math.min(230, 50 * (second + 1)));
      await until(() => routing.dispatcher.running === 0);
      counts.push(sent.length);
    }
    expect(counts).toEqual([50, 100, 150, 200, 230, 230]);
  });

  it("a search looks at a bounded number of events at a time, says at how many, and goes on at its cursor", async () => {
    const routing = await start();
    await put(routing, { paused: true });
    for (let n = 0; n < 25; n++) {
      now += 1;
      await arrive(routing, { note: n === 3 ? "a needle" : "hay" }, n % 2 === 0 ? "even" : "odd");
    }
    const search = new EventSearch(opened.database, { lookedAt: 10 });
    const context = routing.stateContext("default");
    const all = (await list(routing)).map(({ id }) => id).toReversed();
    const needle = { text: "needle" };
    expect(await search.list("default", needle, context, { limit: 5 })).toMatchObject({
      events: [{ id: all[21] }],
      next: null,
      scanned: 25,
    });
    // Out of time after the first look.
    const hurried = new EventSearch(opened.database, { lookedAt: 10, maxSearchMs: 0 });
    const pages: unknown[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await hurried.list("default", needle, context, { cursor, limit: 5 });
      pages.push([page.events.map(({ id }) => id), page.scanned]);
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(pages).toEqual([
      [[], 10],
      [[], 10],
      [[all[21]], 5],
    ]);
    // A full page ends in the middle of what was looked at; nothing is left out and nothing comes twice.
    const even: string[] = [];
    for (let cursor: string | undefined; ;) {
      const page = await search.list("default", { entity: "even" }, context, { cursor, limit: 4 });
      even.push(...page.events.map(({ id }) => id));
      if (page.next === null) break;
      expect(page.events).toHaveLength(4);
      cursor = page.next;
    }
    expect(even).toEqual(all.filter((_, i) => i % 2 === 0));
    expect((await search.list("default", {}, context, { limit: 100 })).scanned).toBeNull();
    const [count] = await search.count("default", { entity: "even" }, context);
    expect(count).toMatchObject({
      route: "main",
      count: 13,
      oldest: START + 1,
      newest: START + 25,
      last: all[0],
    });
    const steps: unknown[] = [];
    for (let after = ""; ;) {
      const next = await search.next("default", needle, context, { after, upto: all[0] ?? "", limit: 100 });
      steps.push(next.ids);
      if (next.isDone) break;
      after = next.position;
    }
    expect(steps).toEqual([[all[21]], [], []]);
    expect((await search.list("other", needle, context, { limit: 5 })).events).toEqual([]);
  });

  it("a route has at most as many attempts at a time as it allows", async () => {
    const routing = await start();
    const ends: (() => void)[] = [];
    answer = () => new Promise((resolve) => ends.push(() => resolve(reply(200))));
    await put(routing, { rate: { concurrent: 2 } });
    for (let n = 0; n < 5; n++) await arrive(routing, { n });
    for (let n = 0; n < 5; n++) {
      await until(() => ends.length > n);
      expect(routing.dispatcher.running).toBeLessThanOrEqual(2);
      expect(sent.length - n).toBeLessThanOrEqual(2);
      ends[n]?.();
      await until(async () => (await list(routing)).filter(({ state }) => state === "delivered").length > n);
    }
    expect(sent).toHaveLength(5);
  });

  it("events of other entities pass one that waits for its retry, and those of its entity do not", async () => {
    const routing = await start();
    answer = ({ body }) =>
      Promise.resolve(reply(Buffer.from(body).includes('"bad"') && now < START + MINUTE ? 500 : 200));
    await put(routing, { order: "entity", retry: { strategy: "linear", intervalMs: MINUTE, count: 5 } });
    await arrive(routing, { what: "bad" }, "one");
    await until(async () => (await list(routing))[0]?.tries === 1);
    await arrive(routing, { what: "after" }, "one");
    await arrive(routing, { what: "beside" }, "two");
    await until(async () =>
      (await list(routing)).some(({ entity, state }) => entity === "two" && state === "delivered"),
    );
    expect((await list(routing)).map(({ state }) => state)).toEqual(["waiting", "waiting", "delivered"]);
    now += 2 * MINUTE;
    routing.dispatcher.wake([KEY]);
    await until(async () => (await list(routing)).every(({ state }) => state === "delivered"));
    expect(
      sent.map(({ body }) => (JSON.parse(Buffer.from(body).toString()) as { what: string }).what),
    ).toEqual(["bad", "beside", "bad", "after"]);
  });

  it("an endpoint that only fails for five days pauses its route, and says so; a success in between does not", async () => {
    const routing = await start();
    let isHealthy = false;
    answer = () => Promise.resolve(reply(isHealthy ? 200 : 500));
    await put(routing, { retry: { strategy: "linear", intervalMs: 1000, count: 0 } });
    const day = 24 * 60 * MINUTE;
    const tryOnce = async () => {
      await arrive(routing);
      await idle(routing);
      await until(() => routing.dispatcher.running === 0);
    };
    await tryOnce();
    now += 4 * day;
    isHealthy = true;
    await tryOnce();
    isHealthy = false;
    now += 2 * day;
    await tryOnce();
    expect(routing.routes.find(ID).pause).toBeNull();
    now += 5 * day;
    await tryOnce();
    expect(routing.routes.find(ID).pause?.because).toBe("failing");
    expect(logs.some((line) => line.includes("has only failed for five days"))).toBe(true);
  });

  it("a delivery that was stored for a listener only is no duplicate for a route that was added since, and then it is one", async () => {
    const routing = await start();
    await routing.listeners.put("default", "laptop", { sources: ["generic"] });
    const again = () => arrive(routing, {}, "e", "the-id-of-the-sender");
    expect([await again(), await again()]).toEqual([false, true]);
    await put(routing);
    expect([await again(), await again()]).toEqual([false, true]);
    await until(async () => (await list(routing)).some(({ state }) => state === "delivered"));
    const found = await list(routing);
    expect(found.map(({ name, state }) => `${name} ${state}`).toSorted()).toEqual([
      "laptop waiting",
      "main delivered",
    ]);
    expect(new Set(found.map(({ delivery }) => delivery)).size).toBe(1);
    expect(sent).toHaveLength(1);
  });

  it("ended events are deleted after their time with their deliveries, and waiting ones are not", async () => {
    const routing = await start();
    await put(routing, { paused: true });
    await arrive(routing, { n: 1 });
    await routing.table.cancelOne("default", (await list(routing))[0]?.id ?? "");
    await arrive(routing, { n: 2 });
    await routing.table.prune(START + 1000, 100);
    const [left, ...others] = await list(routing);
    expect([left?.state, others]).toEqual(["waiting", []]);
    const rows = await opened.database.all<{ id: string }>(sql`SELECT id FROM webhook_stored_delivery`);
    expect(rows.map(({ id }) => id)).toEqual([left?.delivery]);
  });

  it("events that fail for one cause are one issue and one alert; it is resolved when the last of them is delivered, and opens again", async () => {
    const opened: string[] = [];
    feed.current = { ...NO_FEED, issueOpened: (_account, source) => void opened.push(source) };
    const routing = await start();
    await put(routing, { retry: { strategy: "linear", intervalMs: 1000, count: 0 } });
    answer = ({ body }) => Promise.resolve(reply(Buffer.from(body).includes('"other"') ? 404 : 503));
    for (let n = 0; n < 3; n++) await arrive(routing, { n });
    await idle(routing);
    await arrive(routing, { what: "other" });
    await idle(routing);
    const issues = () => routing.issues.list("default", {}, 10);
    expect((await issues()).map(({ cause, count, state }) => `${cause} ${count} ${state}`).sort()).toEqual([
      "the receiver answered 404 1 open",
      "the receiver answered 503 3 open",
    ]);
    await until(() => opened.length >= 2);
    expect(opened).toEqual(["generic", "generic"]);
    const issue = (await issues()).find(({ count }) => count === 3);
    const id = issue?.id ?? "";
    await routing.issues.setState("default", id, "acknowledged");
    answer = () => Promise.resolve(reply(200));
    const own = (await list(routing)).filter((event) => event.issue === id);
    expect(own).toHaveLength(3);
    for (const [n, event] of own.entries()) {
      expect((await routing.issues.find("default", id)).state).toBe("acknowledged");
      await routing.table.replayOne(event, now);
      routing.dispatcher.wake([KEY]);
      await until(
        async () =>
          (await list(routing)).filter((one) => one.issue === id && one.state === "delivered").length > n,
      );
    }
    expect(await routing.issues.find("default", id)).toMatchObject({ state: "resolved", resolvedAt: now });
    answer = () => Promise.resolve(reply(503));
    await arrive(routing, { n: 4 });
    await idle(routing);
    expect(await routing.issues.find("default", id)).toMatchObject({ state: "open", count: 1 });
    await until(() => opened.length >= 3);
    expect(opened).toHaveLength(3);
  });

  it("a route that a listener has taken returns to its target when the listener is gone, and a listener's own route is removed after a day", async () => {
    const routing = await start();
    await put(routing);
    const settings = { sources: ["generic"] };
    await routing.listeners.put("default", "own", settings);
    await routing.listeners.put("default", "laptop", { ...settings, insteadOf: "main" });
    await arrive(routing);
    now += MINUTE - 1;
    await routing.listeners.forget(0);
    expect(sent).toEqual([]);
    expect(routing.routes.find(ID).listener).toBe("laptop");
    await expect(
      routing.listeners.put("default", "other", { ...settings, insteadOf: "main" }),
    ).rejects.toThrow(/has taken the route/);
    now += 2;
    await routing.listeners.forget(0);
    await until(() => sent.length === 1);
    expect(routing.routes.find(ID).listener).toBeNull();
    expect(routing.listeners.routesOf("default", "own")).toHaveLength(1);
    now += 24 * 60 * MINUTE;
    await routing.listeners.forget(0);
    expect(routing.listeners.routesOf("default", "own")).toEqual([]);
    await until(async () => (await list(routing)).every(({ dueAt }) => dueAt === null));
    expect((await list(routing)).map(({ name, state }) => `${name} ${state}`).sort()).toEqual([
      "main delivered",
      "own cancelled",
    ]);
  });

  it("a listener has no more events without a result than it asks for, and a new connection receives those of the one before again", async () => {
    const routing = await start();
    await put(routing, { paused: true });
    await routing.listeners.put("default", "laptop", { sources: ["generic"] });
    for (let n = 0; n < 5; n++) await arrive(routing, { n });
    const read = async (stream: AsyncIterable<unknown>, count: number) => {
      const frames: { event: string; attempt: number }[] = [];
      for await (const chunk of stream) {
        const [, data] = /^event: delivery\ndata: (.*)\n\n$/.exec(String(chunk)) ?? [];
        if (data !== undefined) frames.push(JSON.parse(data) as { event: string; attempt: number });
        if (frames.length === count) break;
      }
      return frames;
    };
    const options = { max: 2, isSigned: false };
    const first = await read(routing.listeners.open("default", "laptop", options), 2);
    const context = routing.stateContext("default");
    const { events: claimed } = await routing.search.list("default", { route: "laptop" }, context, {
      limit: 10,
    });
    expect(claimed.filter(({ isAttempting }) => isAttempting)).toHaveLength(2);
    // Each connection replaces one that may be looking for events at this moment.
    let second = first;
    for (let attempt = 2; attempt < 20; attempt++) {
      second = await read(routing.listeners.open("default", "laptop", options), 2);
      expect(second.map((frame) => [frame.event, frame.attempt])).toEqual(
        first.map(({ event }) => [event, attempt]),
      );
    }
    const answer = {
      url: "http://localhost/",
      error: null,
      durationMs: 1,
      headers: {},
      body: Buffer.from(""),
    };
    // The first connection's answers come too late.
    const late = first.map((frame) => ({ ...answer, ...frame, status: 500 }));
    expect(await routing.listeners.report("default", "laptop", late)).toBe(0);
    const inTime = second.map((frame) => ({ ...answer, ...frame, status: 204 }));
    expect(await routing.listeners.report("default", "laptop", inTime)).toBe(2);
    const third = await read(routing.listeners.open("default", "laptop", options), 2);
    expect(third.every(({ attempt }) => attempt === 1)).toBe(true);
  });

  if (engine === "sqlite") {
    it("a process that starts attempts again what an earlier one was attempting when it died", async () => {
      const first = await start();
      answer = () => new Promise(() => undefined);
      await put(first);
      await arrive(first);
      await until(() => sent.length === 1);
      // The first process is not stopped: it is gone.
      started = [];
      answer = () => Promise.resolve(reply(200));
      const second = await start();
      await until(async () => (await list(second))[0]?.state === "delivered");
      expect(sent.map(({ headers }) => headers["signalbox-attempt"])).toEqual(["1", "2"]);
    });
    return;
  }

  it("of two nodes one makes the attempts of a route, and when it is lost another one does, after the attempts of the first have certainly ended", async () => {
    const names = ["11", "12"];
    const [one, two] = names.map((name) => new FakeNode(name, names)) as [FakeNode, FakeNode];
    const first = await start(one);
    const second = await start(two);
    await put(first);
    await second.routes.load();
    // The attempt never ends by itself.
    answer = () => new Promise(() => undefined);
    await arrive(first);
    await until(() => sent.length === 1);
    const owner = await opened.database.get<{ node: number }>(sql`SELECT node FROM webhook_route_state`);
    const event = await opened.database.get<{ due_at: number; node: number }>(
      sql`SELECT due_at, node FROM webhook_event`,
    );
    expect(event?.node).toBe(owner?.node);
    const isFirst = String(owner?.node) === one.self;
    const survivor = isFirst ? two : one;
    const clock = isFirst ? second.clock : first.clock;
    let attemptedAt = 0;
    answer = () => {
      attemptedAt = clock.now();
      return Promise.resolve(reply(200));
    };
    survivor.setMembers([survivor.self]);
    await until(async () => (await list(second))[0]?.state === "delivered");
    expect(sent).toHaveLength(2);
    expect(attemptedAt).toBeGreaterThanOrEqual(event?.due_at ?? Number.POSITIVE_INFINITY);
  });

  it("a connection of a listener at one node ends its connection at another one, which sends nothing more", async () => {
    const names = ["31", "32"];
    const [one, two] = names.map((name) => new FakeNode(name, names)) as [FakeNode, FakeNode];
    const first = await start(one);
    const second = await start(two);
    await first.listeners.put("default", "laptop", { sources: ["generic"] });
    await second.routes.load();
    const options = { max: 50, isSigned: false };
    const follow = (routing: Routing) => {
      const stream = routing.listeners.open("default", "laptop", options);
      const got: string[] = [];
      let isEnded = false;
      stream.on("data", (chunk: Buffer | string) => {
        const [, data] = /^event: delivery\ndata: (.*)\n\n$/.exec(String(chunk)) ?? [];
        if (data !== undefined) got.push((JSON.parse(data) as { event: string }).event);
      });
      stream.on("end", () => (isEnded = true));
      return { stream, got, isEnded: () => isEnded };
    };
    const older = follow(first);
    await arrive(first, { n: 0 });
    await until(() => older.got.length === 1);
    const newer = follow(second);
    // Its result was not reported.
    await until(() => newer.got.length === 1);
    expect(newer.got).toEqual(older.got);
    for (let n = 1; n < 6; n++) await arrive(n % 2 === 0 ? first : second, { n });
    await until(() => newer.got.length === 6);
    await until(older.isEnded);
    expect(older.got).toHaveLength(1);
    expect(new Set(newer.got).size).toBe(6);
    await second.listeners.remove("default", "laptop");
    await until(newer.isEnded);
    expect(await opened.database.all(sql`SELECT name FROM webhook_listener`)).toEqual([]);
  });

  it("a bulk replay that a node works on is left alone by others, and goes on at its position when the node's time has ended", async () => {
    const node = new FakeNode("42", ["42"]);
    const routing = await start(node);
    await put(routing, { retry: { strategy: "linear", intervalMs: 1000, count: 0 } });
    answer = () => Promise.resolve(reply(500));
    for (let n = 0; n < 3; n++) await arrive(routing, { n });
    await until(async () => (await list(routing)).every(({ state }) => state === "failed"));
    const ids = (await list(routing)).map(({ id }) => id).toSorted();
    answer = () => Promise.resolve(reply(200));
    sent = [];
    // The node 41 has replayed the first event.
    const id = ulid(now);
    const until41 = routing.clock.now() + HOUR;
    await opened.database.run(
      sql`INSERT INTO webhook_replay (id, account_id, query, state, upto, position, total, queued, skipped, created_at, node, node_until)
          VALUES (${id}, 'default', '{"state":"failed"}', 'running', ${ids[2] ?? ""}, ${ids[0] ?? ""}, 3, 1, 0, ${now}, 41, ${until41})`,
    );
    // Replays are looked at one after the other: when a later one is done, this one was left alone.
    const later = await routing.replays.create("default", { state: "cancelled" });
    await until(async () => (await routing.replays.find("default", later.id)).state === "done");
    expect(await routing.replays.find("default", id)).toMatchObject({ state: "running", queued: 1 });
    await opened.database.run(sql`UPDATE webhook_replay SET node_until = 1 WHERE id = ${id}`);
    routing.replays.run();
    await until(async () => (await routing.replays.find("default", id)).state === "done");
    expect(await routing.replays.find("default", id)).toMatchObject({ total: 3, queued: 3, skipped: 0 });
    await until(async () => (await list(routing)).filter(({ state }) => state === "delivered").length === 2);
    expect((await list(routing)).find((event) => event.id === ids[0])?.state).toBe("failed");
    expect(sent).toHaveLength(2);
  });

  it("nothing that arrives after a pause was answered is attempted before the route is resumed", async () => {
    const routing = await start(new FakeNode("51", ["51"]));
    await put(routing);
    const other = managedRoute.parse({ to: { url: "http://other.example/" } });
    await routing.routes.put({ ...ID, name: "other" }, other);
    const count = (host: string) => sent.filter(({ url }) => url.includes(host)).length;
    for (let round = 1; round <= 10; round++) {
      await routing.routes.pause(ID, "operator");
      await arrive(routing, { round });
      // The event of the other route is attempted later than a look at this one would be.
      await until(() => count("other") === round);
      expect(count("receiver")).toBe(round - 1);
      await routing.routes.resume(ID);
      await until(() => count("receiver") === round);
    }
  });

  it("two nodes that both believe to own a route do not attempt an event twice", async () => {
    const [one, two] = ["21", "22"].map((name) => new FakeNode(name, [name])) as [FakeNode, FakeNode];
    const first = await start(one);
    const second = await start(two);
    await put(first);
    await second.routes.load();
    for (let n = 0; n < 50; n++) await arrive(n % 2 === 0 ? first : second, { n });
    await until(async () => (await list(first)).every(({ state }) => state === "delivered"));
    expect(new Set(sent.map(({ headers }) => headers["signalbox-event-id"])).size).toBe(50);
    expect(sent).toHaveLength(50);
  });
});

const TABLES = {
  webhook_route: sql`DELETE FROM webhook_route`,
  webhook_route_state: sql`DELETE FROM webhook_route_state`,
  webhook_event: sql`DELETE FROM webhook_event`,
  webhook_attempt: sql`DELETE FROM webhook_attempt`,
  webhook_stored_delivery: sql`DELETE FROM webhook_stored_delivery`,
  webhook_replay: sql`DELETE FROM webhook_replay`,
  webhook_issue: sql`DELETE FROM webhook_issue`,
  webhook_listener: sql`DELETE FROM webhook_listener`,
};
