/** Which instances are in memory, and who may use their files. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { waitUntil } from "../../../../../test/support/wait-until.ts";
import type { ObjectContext } from "../objects/object-context.ts";
import { openHost, type TestHost } from "../objects/object-host-fixture.ts";
import { DurableObject } from "../objects/workers-module.ts";
import { databaseName, type InstanceRef, keyOf } from "./instance-ref.ts";

/** Objects wait in `wait` until it is resolved. */
let gate = Promise.withResolvers<void>();
let constructed = 0;
/** Alarms of sleepers that have run. */
let rung = 0;

class Counter extends DurableObject {
  declare readonly ctx: ObjectContext;

  constructor(ctx: ObjectContext, env: unknown) {
    super(ctx, env);
    constructed += 1;
  }

  add(by: number): number {
    const count = Number(this.ctx.storage.kv.get("count") ?? 0) + by;
    this.ctx.storage.kv.put("count", count);
    return count;
  }

  async wait(): Promise<void> {
    await gate.promise;
  }
}

/** Its alarm is set again for a time after the first, if there is one. */
class Sleeper extends DurableObject {
  declare readonly ctx: ObjectContext;

  async sleep(until: number, again: number | null): Promise<void> {
    this.ctx.storage.kv.put("again", again);
    await this.ctx.storage.setAlarm(until);
  }

  async alarm(): Promise<void> {
    const again = this.ctx.storage.kv.get("again") as number | null;
    this.ctx.storage.kv.put("again", null);
    if (again !== null) await this.ctx.storage.setAlarm(again);
    rung += 1;
  }
}

type SleeperStub = { sleep(until: number, again: number | null): Promise<void> };
type CounterStub = { add(by: number): Promise<number>; wait(): Promise<void> };

let folder: string;
let test: TestHost;
/** Databases of instances close when it is resolved. */
let closing = Promise.withResolvers<void>();
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-directory-"));
  closing = Promise.withResolvers<void>();
  closing.resolve();
  gate = Promise.withResolvers<void>();
  constructed = 0;
  rung = 0;
  test = await openHost(folder, { Counter }, { beforeClose: () => closing.promise, maxActiveInstances: 2 });
});
afterEach(async () => {
  gate.resolve();
  closing.resolve();
  await test.close();
  await rm(folder, { recursive: true, force: true });
});

const counter = (name: string) => test.env["Counter"]?.getByName(name) as unknown as CounterStub;
const ref = (name: string) => test.host.named("counter", name) as InstanceRef;
const isInMemory = (name: string) => test.directory.find(ref(name)) !== undefined;
const leaveMemory = () => test.directory.endAll("counter", new Error("ended by the test"));
const leaves = (name: string) =>
  waitUntil(
    () => isInMemory(name),
    (isStillThere) => !isStillThere,
  );

it("a successor answers only when the predecessor has closed the database, with what it stored", async () => {
  await counter("x").add(1);
  closing = Promise.withResolvers<void>();
  const order: string[] = [];
  const ended = leaveMemory();
  await leaves("x");
  expect(test.directory.isClosing(keyOf(ref("x")))).toBe(true);
  const answered = counter("x")
    .add(10)
    .then((count) => order.push(`answered ${count}`));
  await new Promise((resolve) => setImmediate(resolve));
  order.push("closed");
  closing.resolve();
  await Promise.all([ended, answered]);
  expect(order).toEqual(["closed", "answered 11"]);
  expect(constructed).toBe(2);
});

describe("at the limit of instances", () => {
  it("an idle one leaves memory for the next", async () => {
    await counter("a").add(1);
    await counter("b").add(1);
    await counter("c").add(1);
    expect(["a", "b", "c"].map(isInMemory)).toEqual([false, true, true]);
    expect(await counter("a").add(1)).toBe(2);
    expect(test.directory.size).toBe(2);
  });

  it("the next is refused while all are busy, and is there when one has ended", async () => {
    const running = [counter("a").wait(), counter("b").wait()];
    await expect(counter("c").add(1)).rejects.toMatchObject({ overloaded: true });
    expect(isInMemory("c")).toBe(false);
    gate.resolve();
    await Promise.all(running);
    expect(await counter("c").add(1)).toBe(1);
  });
});

describe("when the work of many is due at once", () => {
  const COUNT = 12;
  let now = 1_800_000_000_000;
  const restart = async (maxActiveInstances: number) => {
    await test.close();
    test = await openHost(folder, { Sleeper }, { clock: { now: () => now }, maxActiveInstances });
  };
  const plan = async (again: number | null) => {
    await restart(100);
    for (let i = 0; i < COUNT; i++) {
      const sleeper = test.env["Sleeper"]?.getByName(`s${i}`) as unknown as SleeperStub;
      await sleeper.sleep(now + 60_000, again);
    }
    await test.close();
    now += 120_000;
  };
  const haveRung = () =>
    waitUntil(
      () => rung === COUNT && test.directory.isQuiet,
      (areDone) => areDone,
    );

  it("an instance that has done its work leaves memory before there is no room", async () => {
    await plan(null);
    await restart(8);
    await haveRung();
    // Those that were busy when no other was left to wake: half of the memory.
    expect(test.directory.size).toBeLessThanOrEqual(4);
  });

  it("one that has more to do soon stays", async () => {
    await plan(now + 180_000);
    await restart(100);
    await haveRung();
    expect(test.directory.size).toBe(COUNT);
  });
});

describe("reading", () => {
  const read = (name: string) =>
    test.directory.read(ref(name), "test", ({ database }) => database.tableChanges);

  it("an instance that is not in memory runs none of its code, and an event waits until the file is free", async () => {
    await counter("x").add(1);
    await leaveMemory();
    const order: string[] = [];
    const reading = read("x").then(() => order.push("read"));
    expect(test.directory.isClosing(keyOf(ref("x")))).toBe(true);
    const answered = counter("x")
      .add(1)
      .then((count) => order.push(`answered ${count}`));
    await Promise.all([reading, answered]);
    expect(order).toEqual(["read", "answered 2"]);
    // Those of the two events.
    expect(constructed).toBe(2);
  });

  it("an instance that is being destroyed finds nothing, and does not create it again", async () => {
    await counter("x").add(1);
    closing = Promise.withResolvers<void>();
    const destroyed = test.directory.destroy(ref("x"));
    await leaves("x");
    const reading = read("x");
    closing.resolve();
    await expect(reading).rejects.toMatchObject({ id: "agent_instance_not_found" });
    await destroyed;
    expect(await test.directory.exists(ref("x"))).toBe(false);
  });
});

it("a directory that drains loads nothing, and those in memory continue", async () => {
  await counter("x").add(1);
  test.directory.drain();
  expect(await counter("x").add(1)).toBe(2);
  await expect(counter("y").add(1)).rejects.toMatchObject({ retryable: true });
  expect(await test.directory.exists(ref("y"))).toBe(false);
});

it("an arrival is reported once, and not if it was cancelled", async () => {
  const arrived: string[] = [];
  test.directory.onArrival(keyOf(ref("x")), () => arrived.push("x"));
  test.directory.onArrival(keyOf(ref("x")), () => arrived.push("cancelled"))();
  await counter("x").add(1);
  await leaveMemory();
  await counter("x").add(1);
  expect(arrived).toEqual(["x"]);
});

it("the instances that are given to another node are reported to those who listen", async () => {
  const moved: string[] = [];
  const stop = test.directory.onMoved((key) => moved.push(key));
  const names = ["x", "y"].map((name) => databaseName(ref(name)));
  await test.directory.release(names, "2");
  stop();
  await test.directory.release(names, "3");
  expect(moved).toEqual([keyOf(ref("x")), keyOf(ref("y"))]);
});

it("is quiet when no instance works, leaves memory or is looked for", async () => {
  const isQuiet = () =>
    waitUntil(
      () => test.directory.isQuiet,
      (quiet) => quiet,
    );
  await isQuiet();
  const running = counter("x").wait();
  expect(test.directory.isQuiet).toBe(false);
  gate.resolve();
  await running;
  await isQuiet();
  closing = Promise.withResolvers<void>();
  const ended = leaveMemory();
  await leaves("x");
  expect(test.directory.isQuiet).toBe(false);
  closing.resolve();
  await ended;
  await isQuiet();
});
