/** Deliveries that were answered 202 before they were handled, on both database engines, with the test's clock. */
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, vi } from "vitest";
import { SignalboxError } from "@signalbox/protocol";
import { ENGINES, type OpenedDatabase } from "../../../../test/support/engines.ts";
import type { DeliveryOutcome } from "../agents/index.ts";
import { ulid } from "../core/ulid.ts";
import { sql } from "../core/sql.ts";
import { LateDeliveries } from "./late-deliveries.ts";
import { type LateDelivery, LateDeliveryTable } from "./late-delivery-table.ts";

const logger = pino({ level: "silent" });
/** Much longer than anything takes that the tests wait for. */
const RESCUE_MS = 10_000;
const PROCESSED: DeliveryOutcome = { kind: "processed" };

function delivery(changes: Partial<LateDelivery> = {}): LateDelivery {
  return {
    id: ulid(),
    accountId: "default",
    source: "generic",
    agent: "webhook-agent",
    instance: "entity",
    deliveryId: "d",
    receivedAt: 1_800_000_000_000,
    contentType: "application/json",
    headers: { "x-event-type": "t" },
    body: Buffer.from('{"a":"\u00e9"}'),
    ...changes,
  };
}

/** A node as the other nodes see it. */
class FakeNode {
  readonly self: string;
  members: { inc: string; name: string; state: "up" }[] = [];
  readonly #listeners = new Set<() => void>();

  constructor(self: string, members: readonly string[]) {
    this.self = self;
    this.setMembers(members);
  }

  setMembers(incs: readonly string[]): void {
    this.members = incs.map((inc) => ({ inc, name: inc, state: "up" }));
    for (const listener of this.#listeners) listener();
  }

  onChange(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

const joined = (...incs: string[]) => incs.map((inc) => new FakeNode(inc, incs));

describe.each(ENGINES)("on %s", (_engine, open) => {
  let opened: OpenedDatabase;
  let table: LateDeliveryTable;
  let now = 1_800_000_000_000;
  let attempts: LateDelivery[] = [];
  let answer: (delivery: LateDelivery) => Promise<DeliveryOutcome> = () => Promise.resolve(PROCESSED);
  const newLate = (nodes: FakeNode | null = null, readFrom = table) =>
    new LateDeliveries({
      nodes,
      table: readFrom,
      logger,
      clock: { now: () => now },
      deliver: (one) => {
        attempts.push(one);
        return answer(one);
      },
    });
  /** Rows that an earlier process left. */
  const leave = async (...deliveries: LateDelivery[]) => table.insert(deliveries, now);
  const rows = async () => (await table.list("default", undefined, 100)).toReversed();
  const until = async (isSo: () => boolean | Promise<boolean>) => {
    let rescueAt = performance.now() + RESCUE_MS;
    while (!(await isSo())) {
      // A timer whose time has passed is due at once.
      vi.advanceTimersByTime(0);
      await new Promise((resolve) => setImmediate(resolve));
      if (performance.now() < rescueAt) continue;
      // The driver's timers follow the test's clock, too: a connection that was being opened has failed, and the next scan waits.
      pass(1000);
      rescueAt = performance.now() + RESCUE_MS;
    }
  };
  const pass = (ms: number) => {
    now += ms;
    vi.advanceTimersByTime(ms);
  };

  beforeAll(async () => {
    opened = await open();
    table = new LateDeliveryTable(opened.database);
  });

  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    attempts = [];
    answer = () => Promise.resolve(PROCESSED);
  });

  afterEach(async () => {
    vi.useRealTimers();
    await opened.database.run(sql`DELETE FROM webhook_late_delivery`);
  });

  afterAll(async () => {
    await opened.database.close();
    await opened.drop();
  });

  it("a delivery of an earlier process is delivered unchanged to its instance, and its row is deleted afterwards", async () => {
    const left = delivery();
    await leave(left);
    const late = newLate();
    await late.start();
    await until(async () => late.count === 0);
    expect(attempts).toMatchObject([{ ...left, body: expect.anything() }]);
    expect(Buffer.from(attempts[0]?.body ?? [])).toEqual(left.body);
    expect(await rows()).toEqual([]);
    await late.stop();
  });

  it("a delivery that fails is retried after growing pauses, given up after eight failures, and can be revived", async () => {
    answer = () => Promise.reject(new Error("not today"));
    await leave(delivery());
    const late = newLate();
    await late.start();
    for (let failures = 1; failures < 8; failures++) {
      await until(async () => (await rows())[0]?.attempts === failures);
      const next = (await rows())[0]?.nextAttemptAt ?? 0;
      expect(next - now).toBeGreaterThanOrEqual(1000);
      expect(next - now).toBeLessThanOrEqual(1000 + 1000 * 2 ** (failures - 1));
      pass(next - now);
    }
    await until(async () => (await rows())[0]?.nextAttemptAt === null);
    expect((await rows())[0]).toMatchObject({ attempts: 8, lastError: "not today" });
    pass(24 * 60 * 60 * 1000);
    expect(attempts).toHaveLength(8);
    const { id = "" } = (await rows())[0] ?? {};
    expect(await late.revive("somebody else", id)).toBe(false);
    answer = () => Promise.resolve(PROCESSED);
    expect(await late.revive("default", id)).toBe(true);
    await until(() => late.count === 0);
    expect(await rows()).toEqual([]);
    await late.stop();
  });

  it("a row that was read before its attempt ended is not attempted again at once", async () => {
    const first = Promise.withResolvers<DeliveryOutcome>();
    answer = ({ instance }) => (instance === "slow" ? first.promise : Promise.resolve(PROCESSED));
    await leave(delivery({ instance: "slow" }), delivery({ instance: "other" }));
    const gate = Promise.withResolvers<void>();
    let reads = 0;
    class SlowTable extends LateDeliveryTable {
      override async due(...args: Parameters<LateDeliveryTable["due"]>) {
        reads += 1;
        const isSecond = reads === 2;
        const due = await super.due(...args);
        if (isSecond) await gate.promise;
        return due;
      }
    }
    const late = newLate(null, new SlowTable(opened.database));
    await late.start();
    // The end of the other attempt starts the second read.
    await until(() => reads === 2 && late.count === 1);
    first.reject(new Error("not today"));
    await until(async () => (await rows())[0]?.attempts === 1);
    gate.resolve();
    await until(() => reads >= 3);
    // Two instances have no order between them.
    expect(attempts.map(({ instance }) => instance).sort()).toEqual(["other", "slow"]);
    await late.stop();
  });

  it("overload and a missing agent do not count as attempts, and a refusal by the agent is final", async () => {
    const errors: SignalboxError[] = [
      new SignalboxError("overloaded"),
      new SignalboxError("stopping"),
      new SignalboxError("agent_destroyed"),
      new SignalboxError("agent_not_found"),
    ];
    answer = () => Promise.reject(errors.shift() ?? new SignalboxError("webhook_invalid_payload"));
    await leave(delivery());
    const late = newLate();
    await late.start();
    for (let seen = 1; seen <= 4; seen++) {
      await until(async () => attempts.length === seen && ((await rows())[0]?.nextAttemptAt ?? 0) > now);
      expect((await rows())[0]?.attempts).toBe(0);
      pass(seen < 4 ? 1000 : 60 * 60 * 1000);
    }
    await until(() => late.count === 0);
    expect(attempts).toHaveLength(5);
    await late.stop();
  });

  it("an instance that hangs delays only its own deliveries, and each instance gets its deliveries in order", async () => {
    let release = (_outcome: DeliveryOutcome) => {};
    answer = ({ instance }) =>
      instance === "stuck" && attempts.filter((one) => one.instance === "stuck").length === 1
        ? new Promise((resolve) => (release = resolve))
        : Promise.resolve(PROCESSED);
    const stuck = Array.from({ length: 40 }, (_, i) => delivery({ instance: "stuck", deliveryId: `s${i}` }));
    const others = Array.from({ length: 40 }, (_, i) =>
      delivery({ instance: `free-${i}`, deliveryId: `f${i}` }),
    );
    await leave(...stuck, ...others);
    const late = newLate();
    await late.start();
    await until(async () => late.count === 40);
    expect(
      attempts.filter(({ instance }) => instance === "stuck").map(({ deliveryId }) => deliveryId),
    ).toEqual(["s0"]);
    release(PROCESSED);
    await until(async () => late.count === 0);
    expect(
      attempts.filter(({ instance }) => instance === "stuck").map(({ deliveryId }) => deliveryId),
    ).toEqual(stuck.map(({ deliveryId }) => deliveryId));
    await late.stop();
  });

  it("a delivery that the intake is attempting is not started again, and waits for its next attempt when it fails", async () => {
    const late = newLate();
    await late.start();
    const one = delivery();
    await late.store(one);
    let fail = (_error: unknown) => {};
    late.settle(one, new Promise((_resolve, reject) => (fail = reject)));
    expect([late.count, (await rows()).length]).toEqual([1, 1]);
    pass(10_000);
    expect(attempts).toEqual([]);
    fail(new Error("the handler failed"));
    await until(async () => (await rows())[0]?.attempts === 1);
    pass(2000);
    await until(() => late.count === 0);
    expect(attempts.map(({ id }) => id)).toEqual([one.id]);
    await late.stop();
  });

  it("a delivery that is taken back, or given up and dropped, leaves no row", async () => {
    const late = newLate();
    await late.start();
    const one = delivery();
    await late.store(one);
    late.takeBack(one);
    await until(() => late.count === 0);
    expect(await rows()).toEqual([]);
    answer = () => Promise.reject(new Error("never"));
    const two = delivery();
    await late.store(two);
    expect(await late.drop("default", two.id)).toBe(false);
    await table.postpone(two.id, 8, null, "never");
    expect(await late.drop("default", two.id)).toBe(true);
    expect([late.count, await rows()]).toEqual([0, []]);
    await late.stop();
  });

  it("two nodes of a cluster attempt each delivery once", async () => {
    const left = Array.from({ length: 20 }, (_, i) => delivery({ instance: `i${i}`, deliveryId: `d${i}` }));
    await leave(...left);
    const nodes = joined("1", "2").map((node) => newLate(node));
    await Promise.all(nodes.map((late) => late.start()));
    await until(async () => (await rows()).length === 0);
    expect(attempts.map(({ deliveryId }) => deliveryId).toSorted()).toEqual(
      left.map(({ deliveryId }) => deliveryId).toSorted(),
    );
    await Promise.all(nodes.map((late) => late.stop()));
  });

  it("a delivery of a node that is gone is attempted by another one at once, and not before", async () => {
    const [first, second] = joined("1", "2") as [FakeNode, FakeNode];
    const lost = newLate(first);
    const other = newLate(second);
    await lost.start();
    await other.start();
    const one = delivery();
    await lost.store(one);
    lost.settle(one, new Promise(() => undefined));
    // Looks at the table several times.
    for (let i = 0; i < 6; i += 1) {
      pass(5000);
      await until(async () => (await rows()).length === 1);
    }
    expect(attempts).toEqual([]);
    second.setMembers(["2"]);
    await until(async () => (await rows()).length === 0);
    expect(attempts.map(({ id }) => id)).toEqual([one.id]);
    await Promise.all([lost.stop(), other.stop()]);
  });

  it("a node that stops gives back the deliveries that it attempts", async () => {
    const [first, second] = joined("1", "2") as [FakeNode, FakeNode];
    const leaving = newLate(first);
    await leaving.start();
    const one = delivery();
    await leaving.store(one);
    leaving.settle(one, new Promise(() => undefined));
    await leaving.stop();
    // The node is still a member.
    const other = newLate(second);
    await other.start();
    await until(async () => (await rows()).length === 0);
    expect(attempts.map(({ id }) => id)).toEqual([one.id]);
    await other.stop();
  });

  it("a delivery whose outcome could not be stored is attempted again after the pause, also in a cluster", async () => {
    class FailingTable extends LateDeliveryTable {
      isDown = false;

      override async postpone(...args: Parameters<LateDeliveryTable["postpone"]>) {
        if (this.isDown) throw new SignalboxError("storage_unavailable");
        return super.postpone(...args);
      }
    }
    const failing = new FailingTable(opened.database);
    const late = newLate(joined("1", "2")[0], failing);
    await late.start();
    const one = delivery();
    await late.store(one);
    failing.isDown = true;
    late.settle(one, Promise.reject(new Error("not today")));
    await new Promise((resolve) => setImmediate(resolve));
    failing.isDown = false;
    pass(1000);
    await until(() => late.count === 0);
    expect(attempts.map(({ id }) => id)).toEqual([one.id]);
    await late.stop();
  });

  it("ten thousand deliveries are stored, and one more is refused", async () => {
    const late = newLate();
    await late.start();
    const stored = Promise.all(
      Array.from({ length: 10_000 }, () => late.store(delivery({ body: Buffer.from("{}") }))),
    );
    await expect(late.store(delivery())).rejects.toMatchObject({ id: "overloaded" });
    await stored;
    expect((await table.totals()).count).toBe(10_000);
    await late.stop();
  });
});
