/** Senders receive a correct answer in time, however slow the instance or the database is. */
import { createHmac } from "node:crypto";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AgentDeliveries, DeliveryOutcome, WebhookEvent } from "../agents/index.ts";
import { webhookKeys } from "../config/webhook-keys.ts";
import { Limit } from "../core/limit.ts";
import { SharedPlaces } from "../core/shared-pool.ts";
import type { Database, Queryable } from "../database/database.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { EntityClaims } from "./entity-claims.ts";
import { Intake } from "./intake.ts";
import { LateDeliveries } from "./late-deliveries.ts";
import { LateDeliveryTable } from "./late-delivery-table.ts";
import { RejectionBudget } from "./rejection-budget.ts";
import { RejectionNotice } from "./rejection-notice.ts";
import { createSources } from "./source.ts";

const SECRET = "a secret";
const logger = pino({ level: "silent" });
const clock = { now: () => 1_800_000_000_000 };
const sources = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: SECRET });

/** An empty database whose transactions wait for `gate`. */
class SlowDatabase implements Database {
  readonly engine = "sqlite";
  readonly problem = null;
  gate: Promise<void> = Promise.resolve();
  readonly statements: string[] = [];

  all<Row>(): Promise<Row[]> {
    return Promise.resolve([]);
  }

  scan<Row>(): Promise<Row[]> {
    return Promise.resolve([]);
  }

  get<Row>(): Promise<Row | undefined> {
    return Promise.resolve(undefined);
  }

  run(): Promise<{ changes: number }> {
    return Promise.resolve({ changes: 0 });
  }

  async transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
    await this.gate;
    return work({
      all: () => Promise.resolve([]),
      get: () => Promise.resolve(undefined),
      run: ({ parts }) => {
        this.statements.push(parts[0]?.trim().split("(")[0]?.trim() ?? "");
        return Promise.resolve({ changes: 1 });
      },
    });
  }

  close(): Promise<void> {
    return Promise.resolve();
  }
}

describe("a sender", () => {
  let database: SlowDatabase;
  let inFlight: SharedPlaces;
  let bodies: Limit;
  let started: WebhookEvent[];
  let finish: ((outcome: DeliveryOutcome) => void)[];
  let intake: Intake;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    database = new SlowDatabase();
    inFlight = new SharedPlaces(10);
    bodies = new Limit(1000);
    started = [];
    finish = [];
    const agents: AgentDeliveries = {
      hasAgent: () => true,
      agentNames: () => [],
      prepare: () => undefined,
      deliver: (_target, event) => {
        started.push(event);
        return new Promise((resolve) => finish.push(resolve));
      },
    };
    intake = new Intake({
      agents,
      inFlight,
      clock,
      claims: new EntityClaims(database, () => undefined),
      log: new DeliveryLog(database, logger, { keep: 10, onDropped: () => undefined }),
      notice: new RejectionNotice(logger, clock),
      rejections: new RejectionBudget(clock),
      late: new LateDeliveries({
        nodes: null,
        table: new LateDeliveryTable(database),
        clock,
        logger,
        deliver: () => Promise.reject(new Error("not in this test")),
      }),
      routing: { of: () => undefined, store: () => Promise.reject(new Error("not in this test")) },
      certificates: {
        keyOf: () => Promise.reject(new Error("not in this test")),
        visit: () => Promise.reject(new Error("not in this test")),
      },
      answerWithinMs: 8000,
      spans: null,
      alertFeed: { current: null },
      counter: { add: () => undefined },
    });
  });

  afterEach(() => {
    vi.useRealTimers();
  });

  const receive = (urlEntity: string) => {
    const source = sources.get("generic");
    if (source === undefined) throw new Error("the generic source is built in");
    const body = Buffer.from('{"type":"t","id":"1"}');
    const signature = `sha256=${createHmac("sha256", SECRET).update(body).digest("hex")}`;
    bodies.take(body.length);
    const answer = intake.receive({
      source,
      urlEntity,
      headers: { "x-signature": signature, "content-type": "application/json" },
      body,
      releaseBody: () => bodies.release(body.length),
      urls: () => [],
    });
    const received: { answer?: unknown } = {};
    answer.then(
      ({ status }) => (received.answer = status),
      (error: { status: number }) => (received.answer = error.status),
    );
    return received;
  };
  const settle = async () => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  it("is answered 202 two seconds before the limit when the instance is slow and the delivery has been stored", async () => {
    const received = receive("slow");
    await settle();
    vi.advanceTimersByTime(5999);
    await settle();
    expect([received.answer, database.statements]).toEqual([undefined, []]);
    vi.advanceTimersByTime(1);
    await settle();
    expect(received.answer).toBe(202);
    expect(database.statements).toEqual(["INSERT INTO webhook_late_delivery"]);
    // The body is still in memory and counted.
    expect([bodies.used, inFlight.used]).toEqual([21, 1]);
    finish[0]?.({ kind: "processed" });
    await settle();
    expect([bodies.used, inFlight.used]).toEqual([0, 0]);
    expect(database.statements.at(-1)).toBe("DELETE FROM webhook_late_delivery WHERE");
  });

  it("is answered 503 at the limit when the delivery cannot be stored in time, and a row stored later is deleted", async () => {
    const received = receive("slow");
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    vi.advanceTimersByTime(1999);
    await settle();
    expect(received.answer).toBeUndefined();
    vi.advanceTimersByTime(1);
    await settle();
    expect(received.answer).toBe(503);
    open();
    await settle();
    expect(database.statements).toEqual([
      "INSERT INTO webhook_late_delivery",
      "DELETE FROM webhook_late_delivery WHERE",
    ]);
  });

  it("is answered with the outcome when the work ends while the delivery is being stored, and the row is deleted", async () => {
    const received = receive("slow");
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    finish[0]?.({ kind: "processed" });
    await settle();
    expect(received.answer).toBe(200);
    open();
    await settle();
    expect(database.statements).toEqual([
      "INSERT INTO webhook_late_delivery",
      "DELETE FROM webhook_late_delivery WHERE",
    ]);
  });

  it("is answered 503 in time when the claim of a name is slow; that attempt does not run, the next one does", async () => {
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    const received = receive("a/b");
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    vi.advanceTimersByTime(2000);
    await settle();
    expect(received.answer).toBe(503);
    open();
    await settle();
    expect([started, bodies.used, inFlight.used]).toEqual([[], 0, 0]);
    const again = receive("a/b");
    await settle();
    finish[0]?.({ kind: "processed" });
    await settle();
    expect([again.answer, started.length]).toEqual([200, 1]);
  });
});
