/** Nodes that exchange amounts with a real PostgreSQL: what they may use, and what they do when an answer is lost. */
import { SignalboxError } from "@signalbox/protocol";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import type { Clock } from "../../core/clock.ts";
import { SharedClock } from "../../core/shared-clock.ts";
import { sql, type SqlQuery } from "../../core/sql.ts";
import type { Database } from "../../database/database.ts";
import type { SharedNeed } from "./claim.ts";
import { Refusal } from "./limit-refusal.ts";
import type { LimitKind, LimitRule } from "./limit-rule.ts";
import { ShareExchange } from "./share-exchange.ts";
import { joinNode, openSharedCluster, type SharedCluster, usedOf } from "./shared-limits-fixture.ts";
import { ShareTable } from "./share-table.ts";
import { SharedBucket } from "./shared-bucket.ts";
import { createWindow } from "./window.ts";

const UNAVAILABLE = new SignalboxError("storage_unavailable");

let cluster: SharedCluster;
beforeAll(async () => {
  cluster = await openSharedCluster();
});
afterAll(() => cluster.close());

let rules = 0;

function createRule(kind: LimitKind, limit: number): LimitRule {
  const owner = { accountId: "default", key: `exchange ${++rules}` };
  const window = createWindow(null);
  return { owner, id: "r", name: "r", kind, limit, window, isSoft: false, conditions: null };
}

interface Node {
  readonly exchange: ShareExchange;
  readonly errors: unknown[];
  readonly rejoined: { count: number };
  /** Called before and after each statement; may throw. */
  hook: (moment: "before" | "after", query: SqlQuery) => void;
  /** Another identity, as after the node was declared dead. */
  rejoin(): Promise<void>;
  bucketOf(rule: LimitRule): SharedBucket;
  stop(): Promise<void>;
}

async function openNode(clock: Clock = { now: () => Date.now() }): Promise<Node> {
  const shared = cluster.database;
  let inc = await joinNode(shared);
  const errors: unknown[] = [];
  const rejoined = { count: 0 };
  const database: Database = {
    engine: "postgres",
    problem: null,
    async all<Row>(query: SqlQuery): Promise<Row[]> {
      node.hook("before", query);
      const rows = await shared.all<Row>(query);
      node.hook("after", query);
      return rows;
    },
    get: (query) => shared.get(query),
    run: (query) => shared.run(query),
    scan: (query, turn) => shared.scan(query, turn),
    transaction: (work, options) => shared.transaction(work, options),
    close: () => Promise.resolve(),
  };
  const exchange = new ShareExchange({
    table: new ShareTable(database),
    clock: new SharedClock(clock),
    incarnation: () => inc,
    onError: (error) => void errors.push(error),
    onRejoined: () => void (rejoined.count += 1),
  });
  const node: Node = {
    exchange,
    errors,
    rejoined,
    hook: () => undefined,
    async rejoin() {
      await shared.all(sql`UPDATE signalbox_node SET state = 'dead' WHERE inc = ${inc}::bigint`);
      inc = await joinNode(shared);
    },
    bucketOf: ({ window, owner, id, kind }) =>
      new SharedBucket(window, owner, id, kind, (bucket) => exchange.changed(bucket)),
    stop: () => exchange.stop(),
  };
  onTestFinished(async () => {
    node.hook = () => undefined;
    await exchange.stop();
    await shared.all(sql`DELETE FROM signalbox_node WHERE inc = ${inc}::bigint`);
  });
  return node;
}

function needOf(rule: LimitRule, bucket: SharedBucket, amount: number): SharedNeed {
  const step = { provider: "openai", model: "m" };
  return { rule, bucket, amount, expected: amount, isBounded: true, runsAlone: false, isForced: false, step };
}

const rowOf = ({ owner, kind, id }: LimitRule) =>
  cluster.database.get<{ used: Record<string, number>; held: number; spare: number }>(
    sql`SELECT used, held, spare FROM limit_share WHERE owner = ${owner.key} AND bucket = ${`${kind} ${id}`}`,
  );
const isExchange = (query: SqlQuery) =>
  query.parts.join("").includes("UPDATE limit_share s SET used = r.slots");

it("an amount is used when the database has counted it, and not before", async () => {
  const node = await openNode();
  const rule = createRule("cost", 1000);
  const bucket = node.bucketOf(rule);
  const need = needOf(rule, bucket, 300);
  expect(node.exchange.tryTake([need])).toBe(false);
  expect(bucket.held).toBe(0);
  expect(await node.exchange.take([need])).toBeNull();
  expect(bucket.held).toBe(300);
  // It is counted from the moment in which the call may use it: as taken, and then as held.
  const row = await rowOf(rule);
  expect((row?.held ?? 0) + (row?.spare ?? 0)).toBe(300);
  await expect.poll(async () => (await rowOf(rule))?.held).toBe(300);
});

it("all amounts of a call are taken, or none", async () => {
  const node = await openNode();
  const [wide, narrow] = [createRule("cost", 1000), createRule("parallel", 1)];
  const [money, places] = [node.bucketOf(wide), node.bucketOf(narrow)];
  const call = () => node.exchange.take([needOf(wide, money, 100), needOf(narrow, places, 1)]);
  expect(await call()).toBeNull();
  expect(await call()).toBeInstanceOf(Refusal);
  expect([money.held, places.held]).toEqual([100, 1]);
});

it("a statement whose answer was lost is sent again as it was, and counted once", async () => {
  const node = await openNode();
  const rule = createRule("tokens", 1_000_000);
  const bucket = node.bucketOf(rule);
  expect(await node.exchange.take([needOf(rule, bucket, 10)])).toBeNull();
  const sent: unknown[][] = [];
  node.hook = (moment, query) => {
    if (moment === "before" || !isExchange(query)) return;
    sent.push([...query.values]);
    if (sent.length === 1) throw UNAVAILABLE;
  };
  bucket.add(rule.window.slotOf(0), 70);
  await expect.poll(() => sent.length).toBeGreaterThan(1);
  expect(sent[1]).toEqual(sent[0]);
  bucket.release({ amount: 10, expected: 10 });
  await node.stop();
  expect(await rowOf(rule)).toMatchObject({ held: 0, spare: 0 });
  expect(usedOf(await rowOf(rule))).toBe(70);
});

it("while the database is unavailable, calls that wait are refused, not as calls beyond a limit; later ones pass", async () => {
  const node = await openNode();
  const rule = createRule("cost", 1000);
  const bucket = node.bucketOf(rule);
  let isGone = true;
  node.hook = () => {
    if (isGone) throw UNAVAILABLE;
  };
  const refusal = await node.exchange.take([needOf(rule, bucket, 10)]);
  expect(refusal?.isChecked).toBe(false);
  expect(refusal?.toError()).toMatchObject({ id: "storage_unavailable", headers: { "retry-after": "1" } });
  expect(bucket.waiting).toBe(0);
  isGone = false;
  await expect.poll(() => node.exchange.take([needOf(rule, bucket, 10)])).toBeNull();
  expect(bucket.held).toBe(10);
});

it("what another node has taken ahead and not used goes to a call that waits for it", async () => {
  const [a, b] = [await openNode(), await openNode()];
  const rule = createRule("requests", 100);
  const [here, there] = [a.bucketOf(rule), b.bucketOf(rule)];
  for (let i = 0; i < 20; i++) {
    expect(await a.exchange.take([needOf(rule, here, 1)])).toBeNull();
  }
  expect(await b.exchange.take([needOf(rule, there, 80)])).toBeNull();
  expect(await b.exchange.take([needOf(rule, there, 1)])).toBeInstanceOf(Refusal);
  await expect.poll(async () => usedOf(await rowOf(rule))).toBe(100);
});

it("when a node stops, everything is reported and given back, and calls that wait are refused", async () => {
  const node = await openNode();
  const rule = createRule("tokens", 1000);
  const bucket = node.bucketOf(rule);
  expect(await node.exchange.take([needOf(rule, bucket, 10)])).toBeNull();
  bucket.release({ amount: 10, expected: 10 });
  bucket.add(rule.window.slotOf(0), 4);
  const waiting = node.exchange.take([needOf(rule, bucket, 2000)]);
  await node.stop();
  expect(await waiting).toBeInstanceOf(Refusal);
  expect(await node.exchange.take([needOf(rule, bucket, 1)])).toMatchObject({ isChecked: false });
  expect(await rowOf(rule)).toMatchObject({ held: 0, spare: 0 });
  expect(usedOf(await rowOf(rule))).toBe(4);
});

it("what was used before a stop is reported, although the first statement counts nothing because the clock was set", async () => {
  let offset = 0;
  const node = await openNode({ now: () => Date.now() + offset });
  const rule = createRule("cost", 1000);
  const bucket = node.bucketOf(rule);
  expect(await node.exchange.take([needOf(rule, bucket, 10)])).toBeNull();
  offset = 3_600_000;
  bucket.release({ amount: 10, expected: 10 });
  bucket.add(rule.window.slotOf(0), 7);
  await node.stop();
  expect(await rowOf(rule)).toMatchObject({ held: 0, spare: 0 });
  expect(usedOf(await rowOf(rule))).toBe(7);
});

it("a node that was declared dead takes nothing under its old identity, and begins anew under the next one", async () => {
  const node = await openNode();
  const rule = createRule("cost", 1000);
  expect(await node.exchange.take([needOf(rule, node.bucketOf(rule), 400)])).toBeNull();
  await expect.poll(async () => (await rowOf(rule))?.held).toBe(400);
  await node.rejoin();
  await cluster.settleDead();
  expect(usedOf(await rowOf(rule))).toBe(400);
  const next = node.bucketOf(rule);
  // The first round notices the new identity, and refuses what waited under the old one.
  await expect.poll(() => node.exchange.take([needOf(rule, next, 600)])).toBeNull();
  expect(node.rejoined.count).toBe(1);
  expect(await node.exchange.take([needOf(rule, next, 1)])).toBeInstanceOf(Refusal);
});
