/** Senders get their answer in time, whatever holds their delivery up, and what they are told is true. */
import { createHmac } from "node:crypto";
import { pino } from "pino";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import type { AgentsDoor, DeliveryOutcome, WebhookEvent } from "../agents/index.ts";
import { webhookKeys } from "../config/webhook-keys.ts";
import type { Database, Queryable } from "../database/database.ts";
import { Admission } from "./admission.ts";
import { DeliveryLog } from "./delivery-log.ts";
import { EntityClaims } from "./entity-claims.ts";
import { Intake } from "./intake.ts";
import { LateDeliveries } from "./late-deliveries.ts";
import { LateDeliveryTable } from "./late-delivery-table.ts";
import { answerTimes } from "./pending-answer.ts";
import { RejectionNotice } from "./rejection-notice.ts";
import { createSources } from "./source.ts";

const SECRET = "a secret";
const logger = pino({ level: "silent" });
const clock = { now: () => 1_800_000_000_000 };
const sources = createSources(webhookKeys.parse({}), { WEBHOOK_SECRET: SECRET });

/** A database that is as slow or broken as the test says, and knows nothing. */
class SlowDatabase implements Database {
  readonly engine = "sqlite";
  readonly problem = null;
  gate: Promise<void> = Promise.resolve();
  readonly statements: string[] = [];

  all<Row>(): Promise<Row[]> {
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
  let admission: Admission;
  let started: WebhookEvent[];
  let finish: ((outcome: DeliveryOutcome) => void)[];
  let intake: Intake;

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
    database = new SlowDatabase();
    admission = new Admission({ maxInFlight: 10, maxBufferedBytes: 1000 });
    started = [];
    finish = [];
    const agents: AgentsDoor = {
      hasAgent: () => true,
      prepare: () => undefined,
      deliver: (_target, event) => {
        started.push(event);
        return new Promise((resolve) => finish.push(resolve));
      },
    };
    intake = new Intake({
      agents,
      admission,
      clock,
      claims: new EntityClaims(database, () => undefined),
      log: new DeliveryLog(database, logger, { keep: 10, onDropped: () => undefined }),
      notice: new RejectionNotice(logger, clock),
      late: new LateDeliveries({
        table: new LateDeliveryTable(database),
        clock,
        logger,
        deliver: () => Promise.reject(new Error("not in this test")),
      }),
      times: answerTimes(8000),
      onRecord: () => undefined,
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
    admission.reserveBytes(body.length);
    const answer = intake.receive({
      source,
      urlEntity,
      headers: { "x-signature": signature, "content-type": "application/json" },
      body,
      reservedBytes: body.length,
      urls: () => [],
    });
    const told: { answer?: unknown } = {};
    answer.then(
      ({ status }) => (told.answer = status),
      (error: { status: number }) => (told.answer = error.status),
    );
    return told;
  };
  const settle = async () => {
    for (let i = 0; i < 5; i++) await new Promise((resolve) => setImmediate(resolve));
  };

  it("whose instance takes its time is answered 202 once the delivery is stored, two seconds before its time is up", async () => {
    const told = receive("slow");
    await settle();
    vi.advanceTimersByTime(5999);
    await settle();
    expect([told.answer, database.statements]).toEqual([undefined, []]);
    vi.advanceTimersByTime(1);
    await settle();
    expect(told.answer).toBe(202);
    expect(database.statements).toEqual(["INSERT INTO webhook_late_delivery"]);
    // The body is still in memory, and counts.
    expect([admission.bufferedBytes, admission.inFlight]).toEqual([21, 1]);
    finish[0]?.({ kind: "processed" });
    await settle();
    expect([admission.bufferedBytes, admission.inFlight]).toEqual([0, 0]);
    expect(database.statements.at(-1)).toBe("DELETE FROM webhook_late_delivery WHERE");
  });

  it("whose delivery cannot be stored in time is answered 503 when its time is up, and what was stored is taken back", async () => {
    const told = receive("slow");
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    vi.advanceTimersByTime(1999);
    await settle();
    expect(told.answer).toBeUndefined();
    vi.advanceTimersByTime(1);
    await settle();
    expect(told.answer).toBe(503);
    open();
    await settle();
    expect(database.statements).toEqual([
      "INSERT INTO webhook_late_delivery",
      "DELETE FROM webhook_late_delivery WHERE",
    ]);
  });

  it("whose delivery ends while it is being stored is answered with the outcome, and the row goes again", async () => {
    const told = receive("slow");
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    finish[0]?.({ kind: "processed" });
    await settle();
    expect(told.answer).toBe(200);
    open();
    await settle();
    expect(database.statements).toEqual([
      "INSERT INTO webhook_late_delivery",
      "DELETE FROM webhook_late_delivery WHERE",
    ]);
  });

  it("that waits for the claim of a name is answered 503 in time, nothing runs then, and its next try does", async () => {
    let open = () => {};
    database.gate = new Promise((resolve) => (open = resolve));
    const told = receive("a/b");
    await settle();
    vi.advanceTimersByTime(6000);
    await settle();
    vi.advanceTimersByTime(2000);
    await settle();
    expect(told.answer).toBe(503);
    open();
    await settle();
    expect([started, admission.bufferedBytes, admission.inFlight]).toEqual([[], 0, 0]);
    const again = receive("a/b");
    await settle();
    finish[0]?.({ kind: "processed" });
    await settle();
    expect([again.answer, started.length]).toEqual([200, 1]);
  });
});
