/** Two nodes, one instance: it runs on one of them, and moves without a lost or doubled event. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from "vitest";
import { openTestPostgres, type TestPostgres } from "../../../../../test/support/test-postgres.ts";
import { Agent } from "../api/agent.ts";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { databaseName } from "../instance/instance-ref.ts";
import { Waker } from "../instance/waker.ts";
import { type TestNode, TestNodes } from "./nodes-fixture.ts";

/** Turns that wait, by instance. */
const waits = new Map<string, PromiseWithResolvers<void>>();
const rung: string[] = [];

class Counter extends Agent<unknown, { count: number }> {
  override initialState = { count: 0 };

  add(): number {
    this.setState({ count: this.state.count + 1 });
    return this.state.count;
  }

  read(): number {
    return this.state.count;
  }

  async slowly(): Promise<number> {
    const wait = Promise.withResolvers<void>();
    waits.set(this.name, wait);
    await wait.promise;
    return this.add();
  }

  async later(seconds: number): Promise<void> {
    await this.schedule(seconds, "ring");
  }

  ring(): void {
    rung.push(this.name);
    this.add();
  }
}

let postgres: TestPostgres;
let nodes: TestNodes;
let a: TestNode;
let b: TestNode;

beforeAll(async () => {
  postgres = await openTestPostgres();
});
afterAll(() => postgres.drop());

beforeEach(async () => {
  nodes = await TestNodes.open(postgres, Counter);
  a = await nodes.join();
  b = await nodes.join();
  waits.clear();
  rung.length = 0;
});
afterEach(async () => {
  for (const { resolve } of waits.values()) resolve();
  for (const node of new Set([a, b])) await node.stop();
  await nodes.close();
});

const begun = async (name: string) => {
  while (!waits.has(name)) await new Promise((resolve) => setImmediate(resolve));
};
const settled = () => new Promise((resolve) => setTimeout(resolve, 20));

test("an instance of a living node is refused here, quietly, and nothing counts as a failure", async () => {
  await a.call("one", "add");
  await expect(b.call("one", "add")).rejects.toBeInstanceOf(InstanceElsewhereError);
  await expect(b.call("one", "add")).rejects.toMatchObject({ node: a.inc, id: "overloaded" });
  expect(b.logged).toEqual([]);
  expect(await a.call("one", "add")).toBe(2);
});

test("a node that was declared dead cannot write any more", async () => {
  expect(await a.call("two", "add")).toBe(1);
  nodes.declareDead(a);
  expect(await b.call("two", "add")).toBe(2);
  await expect(a.call("two", "add")).rejects.toBeInstanceOf(InstanceFencedError);
  expect(a.logged).toEqual([]);
  expect(a.directory.find(a.ref("two"))).toBe(undefined);
  expect(await b.call("two", "read")).toBe(2);
  expect(a.store.ownership.figures.refusals).toBe(1);
});

test("a node that joins again drops its instances: what has begun is refused, what waits is sent elsewhere", async () => {
  expect(await a.call("twelve", "add")).toBe(1);
  const slow = a.call("twelve", "slowly");
  await begun("twelve");
  const waiting = a.call("twelve", "add");
  nodes.declareDead(a);
  a.store.ownership.rejoined();
  await expect(slow).rejects.toBeInstanceOf(InstanceFencedError);
  await expect(waiting).rejects.toBeInstanceOf(InstanceElsewhereError);
  waits.get("twelve")?.resolve();
  expect(await b.call("twelve", "add")).toBe(2);
  expect(a.logged).toEqual([]);
});

test("an answer that only read is not sent when the lease is old and another node has the instance", async () => {
  expect(await a.call("three", "add")).toBe(1);
  expect(await a.call("three", "read")).toBe(1);
  a.lease.isFresh = false;
  expect(await a.call("three", "read")).toBe(1);
  nodes.declareDead(a);
  expect(await b.call("three", "add")).toBe(2);
  await expect(a.call("three", "read")).rejects.toBeInstanceOf(InstanceFencedError);
  expect(a.logged).toEqual([]);
});

test("a former owner changes nothing in the catalog any more", async () => {
  await a.call("four", "later", 3600);
  const before = await b.catalog.find(b.ref("four"));
  nodes.declareDead(a);
  await b.call("four", "later", 1800);
  const after = await b.catalog.find(b.ref("four"));
  expect(after?.epoch).toBe((before?.epoch ?? 0) + 1);
  // The former owner sets an earlier time, which is refused together with its work.
  await expect(a.call("four", "later", 1)).rejects.toBeInstanceOf(InstanceFencedError);
  await a.catalog.flush();
  expect(await b.catalog.find(b.ref("four"))).toEqual(after);
});

test("an instance is handed over: the running turn ends here, what waits is told the new owner", async () => {
  expect(await a.call("five", "add")).toBe(1);
  const slow = a.call("five", "slowly");
  await begun("five");
  const waiting = a.call("five", "add").catch((error: unknown) => error);
  const given = a.directory.handOver(a.ref("five"), b.inc);
  await settled();
  waits.get("five")?.resolve();
  expect(await slow).toBe(2);
  await given;
  expect(await waiting).toMatchObject({ node: b.inc });
  expect(await b.call("five", "add")).toBe(3);
  expect(b.store.ownership.figures.takeOvers).toBe(0);
  await expect(a.call("five", "add")).rejects.toMatchObject({ node: b.inc });
  expect([...a.logged, ...b.logged]).toEqual([]);
});

test("an instance that is not in memory is handed over, too", async () => {
  expect(await a.call("six", "add")).toBe(1);
  a.instance("six").hibernate();
  await a.directory.handOver(a.ref("six"), b.inc);
  expect(await a.placement.find(a.ref("six"))).toBe(b.inc);
  expect(await b.call("six", "add")).toBe(2);
});

test("a draining node hands everything over, and is empty afterwards", async () => {
  const names = Array.from({ length: 20 }, (_, i) => `drain-${i}`);
  for (const name of names) await a.call(name, "add");
  for (const name of names.slice(0, 8)) a.instance(name).hibernate();
  const slow = a.call("drain-15", "slowly");
  await begun("drain-15");
  a.isDraining = true;
  nodes.changed();
  const retired = a.instances.retire(AbortSignal.timeout(30_000));
  await settled();
  waits.get("drain-15")?.resolve();
  await retired;
  expect(await slow).toBe(2);
  expect([...a.store.ownership.held]).toEqual([]);
  for (const name of names) expect(await b.call(name, "add")).toBe(name === "drain-15" ? 3 : 2);
  expect([...a.logged, ...b.logged]).toEqual([]);
});

test("what comes to a draining node later is handed over at the end", async () => {
  await a.instances.retireRest();
  a.isDraining = true;
  nodes.changed();
  await a.instances.retire(AbortSignal.timeout(30_000));
  // The others do not know yet that it drains, or the event was on its way.
  expect(await a.call("late", "add")).toBe(1);
  await a.instances.retireRest();
  expect([...a.store.ownership.held]).toEqual([]);
  expect(await b.call("late", "add")).toBe(2);
});

test("the last node keeps its instances", async () => {
  await a.call("seven", "add");
  nodes.declareDead(b);
  a.isDraining = true;
  nodes.changed();
  await a.instances.retire(AbortSignal.timeout(30_000));
  expect(a.store.ownership.isHeld(databaseName(a.ref("seven")))).toBe(true);
});

test("due work of a dead node runs elsewhere, with no event", async () => {
  await a.call("eight", "later", 3);
  a.instance("eight").hibernate();
  await a.stop();
  nodes.declareDead(a);
  b.directory.start();
  b.instances.start();
  while (!rung.includes("eight")) await settled();
  expect(await b.call("eight", "read")).toBe(1);
  expect(b.instances.wokenOrphans).toBeGreaterThan(0);
  expect(rung).toEqual(["eight"]);
  a = b;
});

test("an instance that was destroyed is created anew at another node", async () => {
  await a.call("ten", "add");
  await a.directory.destroy(a.ref("ten"));
  expect(await b.call("ten", "add")).toBe(1);
  expect(await b.catalog.find(b.ref("ten"))).toBeDefined();
  await expect(a.call("ten", "add")).rejects.toBeInstanceOf(InstanceElsewhereError);
});

test("due work of an instance that its own node had to drop is woken there, and nobody has to ask for it", async () => {
  const left = vi.spyOn(Waker.prototype, "onLeave");
  a.directory.start();
  await a.call("fenced", "later", 2);
  a.store.ownership.drop(databaseName(a.ref("fenced")));
  await expect.poll(() => rung).toEqual(["fenced"]);
  // The waker knew of it, and did not only find it by its scan of every minute.
  expect(left.mock.calls[0]).toEqual([expect.anything(), expect.any(Number), null]);
  left.mockRestore();
});
