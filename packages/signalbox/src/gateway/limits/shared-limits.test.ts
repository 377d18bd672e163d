import { afterAll, beforeAll, expect, it } from "vitest";
import { sql } from "../../core/sql.ts";
import type { Gateway } from "../settings/gateway.ts";
import { Grant } from "./grant.ts";
import { Refusal } from "./limit-refusal.ts";
import { toLimitRules } from "./limit-rule.ts";
import { gatewayOwner } from "./limits.ts";
import {
  aboutAnHour,
  demandOf,
  gatewayWith,
  openSharedCluster,
  request,
  reserve,
  rowOf,
  rulesOf,
  type SharedCluster,
  type SharedNode,
  tokenWith,
  usedOf,
  withRules,
} from "./shared-limits-fixture.ts";

let cluster: SharedCluster;
let nodes: SharedNode[];

beforeAll(async () => {
  cluster = await openSharedCluster();
  nodes = [];
  for (let i = 0; i < 4; i++) nodes.push(await cluster.openNode());
});
afterAll(async () => {
  expect(cluster.errors).toEqual([]);
  await cluster.close();
});

/**
 * What PostgreSQL has been told of a rule for costs. Both: what a call holds may be 0 there because it was not reported yet, and a statement that reports it be
 * under way.
 */
async function reported(gateway: Gateway): Promise<{ used: number; held: number | undefined }> {
  const row = await rowOf(cluster.database, gateway, "cost r");
  return { used: usedOf(row), held: row?.held };
}

const WINDOWS = 100;
const WINDOW_S = aboutAnHour();

it("lets exactly the limit of requests pass, over four nodes with 64 callers each", async () => {
  const passed: number[] = [];
  for (let i = 0; i < WINDOWS; i++) {
    const gateway = gatewayWith({ rate_limiting_limit: 1000, rate_limiting_interval: WINDOW_S });
    let count = 0;
    const caller = async (node: SharedNode) => {
      let refusal = await request(node, gateway);
      for (; refusal === null; refusal = await request(node, gateway)) count += 1;
      expect(refusal.id).toBe("gateway_rate_limited");
    };
    await Promise.all(nodes.flatMap((node) => Array.from({ length: 64 }, () => caller(node))));
    passed.push(count);
    expect(usedOf(await rowOf(cluster.database, gateway, "requests /rate_limiting"))).toBe(1000);
  }
  expect(passed).toEqual(Array.from({ length: WINDOWS }, () => 1000));
});

it("counts small limits exactly, in sliding windows too", async () => {
  const gateway = gatewayWith({
    rate_limiting_limit: 7,
    rate_limiting_interval: WINDOW_S,
    rate_limiting_technique: "sliding",
  });
  const results = await Promise.all(
    Array.from({ length: 40 }, (_, i) => request(nodes[i % 4] as SharedNode, gateway)),
  );
  expect(results.filter((refusal) => refusal === null)).toHaveLength(7);
  const refusal = await request(nodes[0] as SharedNode, gateway);
  expect(Number(refusal?.headers["retry-after"])).toBeGreaterThan(3000);
  expect(refusal?.headers).toMatchObject({
    "x-ratelimit-limit-requests": "7",
    "x-ratelimit-remaining-requests": "0",
  });
});

it("never reserves more than the limit, and admits while anything is left", async () => {
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 1, window: WINDOW_S }]);
  const calls = await Promise.all(
    Array.from({ length: 40 }, (_, i) => reserve(nodes[i % 4] as SharedNode, gateway, demandOf(0.05))),
  );
  const settles = calls.filter((call) => typeof call === "function");
  expect(settles).toHaveLength(20);
  const refusal = calls.find((call) => typeof call !== "function");
  expect(refusal).toMatchObject({
    id: "gateway_spend_limit",
    fields: { rule: "r", limit: 1, spent: 0, reserved: 1 },
  });
  for (const settle of settles) settle(0.01);
  // 0.2 dollars are spent: sixteen more fit.
  await expect.poll(() => reported(gateway)).toEqual({ used: 200_000, held: 0 });
  const more = await Promise.all(
    Array.from({ length: 30 }, (_, i) => reserve(nodes[i % 4] as SharedNode, gateway, demandOf(0.05))),
  );
  const admitted = more.filter((call) => typeof call === "function");
  expect(admitted).toHaveLength(16);
  for (const settle of admitted) settle(0.05);
  await expect.poll(async () => usedOf(await rowOf(cluster.database, gateway, "cost r"))).toBe(1_000_000);
});

it("lets a call without an output limit run alone over all nodes", async () => {
  const [a, b] = nodes as [SharedNode, SharedNode];
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 1, window: WINDOW_S }]);
  const unbounded = demandOf(0.1, 0, false, 5);
  const first = await reserve(a, gateway, unbounded);
  expect(first).toBeTypeOf("function");
  expect(await reserve(b, gateway, unbounded)).toMatchObject({ id: "gateway_spend_limit" });
  expect(await reserve(b, gateway, demandOf(0.1))).toMatchObject({ id: "gateway_spend_limit" });
  if (typeof first === "function") first(0.4);
  await expect.poll(() => reported(gateway)).toEqual({ used: 400_000, held: 0 });
  const second = await reserve(b, gateway, unbounded);
  expect(second).toBeTypeOf("function");
  if (typeof second === "function") second(0.7);
  await expect.poll(() => reported(gateway)).toEqual({ used: 1_100_000, held: 0 });
  expect(await reserve(a, gateway, unbounded)).toMatchObject({ fields: { spent: 1.1 } });
});

it("lets a call that was only partly read begin only while no node has a call", async () => {
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 1, window: WINDOW_S }]);
  const partial = { ...demandOf(0.1), isPartial: true };
  const calls = await Promise.all(
    Array.from({ length: 16 }, (_, i) => reserve(nodes[i % 4] as SharedNode, gateway, partial)),
  );
  const running = calls.filter((call) => typeof call === "function");
  expect(running).toHaveLength(1);
  expect(calls.find((call) => typeof call !== "function")).toMatchObject({ id: "gateway_spend_limit" });
  // Other calls may begin beside it, and it may not begin beside them.
  const known = await reserve(nodes[1] as SharedNode, gateway, demandOf(0.1));
  expect(known).toBeTypeOf("function");
  for (const settle of running) settle(0.2);
  await expect.poll(() => reported(gateway)).toEqual({ used: 200_000, held: 100_000 });
  expect(await reserve(nodes[2] as SharedNode, gateway, partial)).toMatchObject({
    id: "gateway_spend_limit",
  });
  if (typeof known === "function") known(0.1);
  await expect.poll(() => reported(gateway)).toEqual({ used: 300_000, held: 0 });
  // What nodes have only taken ahead they give back.
  const last = await reserve(nodes[2] as SharedNode, gateway, partial);
  expect(last).toBeTypeOf("function");
  if (typeof last === "function") last(0.1);
});

it("bounds parallel calls over nodes", async () => {
  const gateway = gatewayWith({}, [{ id: "p", limitType: "parallel", limit: 5 }]);
  const results = await Promise.all(
    Array.from({ length: 20 }, async (_, i) =>
      rulesOf(nodes[i % 4] as SharedNode, gateway).arrive([demandOf(0)]),
    ),
  );
  const running = results.filter((taken) => taken instanceof Grant);
  expect(running).toHaveLength(5);
  running.pop()?.release();
  await expect.poll(async () => (await rowOf(cluster.database, gateway, "parallel p"))?.held).toBe(4);
  expect(await request(nodes[3] as SharedNode, gateway)).toBeNull();
  for (const grant of running) grant.release();
});

it("takes all amounts of a call or none", async () => {
  const rules = [
    { id: "wide", limitType: "requests", limit: 100, window: WINDOW_S },
    { id: "narrow", limitType: "requests", limit: 10, window: WINDOW_S },
  ];
  const gateway = gatewayWith({}, rules);
  const results = await Promise.all(
    Array.from({ length: 80 }, (_, i) => request(nodes[i % 4] as SharedNode, gateway)),
  );
  expect(results.filter((refusal) => refusal === null)).toHaveLength(10);
  const wide = gatewayWith({}, [{ id: "wide", limitType: "requests", limit: 100, window: WINDOW_S }]);
  const sameOwner = { ...wide, id: gateway.id };
  const others = await Promise.all(
    Array.from({ length: 120 }, (_, i) => request(nodes[i % 4] as SharedNode, sameOwner)),
  );
  expect(others.filter((refusal) => refusal === null)).toHaveLength(90);
});

it("gives back what it took ahead and did not use", async () => {
  const gateway = gatewayWith({ rate_limiting_limit: 1000, rate_limiting_interval: WINDOW_S });
  for (let i = 0; i < 50; i++) await request(nodes[0] as SharedNode, gateway);
  const row = () => rowOf(cluster.database, gateway, "requests /rate_limiting");
  await expect.poll(async () => (await row())?.spare).toBe(0);
  expect(usedOf(await row())).toBe(50);
});

it("counts what a killed node held and had taken as spent; its parallel calls are free", async () => {
  const gateway = gatewayWith({}, [
    { id: "r", limitType: "cost", limit: 10, window: WINDOW_S },
    { id: "p", limitType: "parallel", limit: 1 },
  ]);
  const [a] = nodes as [SharedNode];
  const doomed = await cluster.openNode();
  const rules = rulesOf(doomed, gateway);
  expect(await rules.arrive([demandOf(0)])).toBeInstanceOf(Grant);
  expect(await rules.reserve([demandOf(3)])).toBeInstanceOf(Grant);
  await expect.poll(async () => (await rowOf(cluster.database, gateway, "cost r"))?.held).toBe(3_000_000);
  expect(await request(a, gateway)).toMatchObject({ id: "gateway_rate_limited" });
  await doomed.kill();
  await expect.poll(async () => usedOf(await rowOf(cluster.database, gateway, "cost r"))).toBe(3_000_000);
  const after = rulesOf(a, gateway);
  const place = await after.arrive([demandOf(0)]);
  const refused = await after.reserve([demandOf(8)]);
  expect(refused instanceof Refusal && refused.toError()).toMatchObject({ fields: { spent: 3 } });
  for (const taken of [place, await after.reserve([demandOf(7)])]) {
    if (taken instanceof Refusal) throw taken.toError();
    taken.release();
  }
});

it("a node that was declared dead goes on under its new identity, and loses nothing that it spent", async () => {
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 10, window: null }]);
  const node = await cluster.openNode();
  const settle = await reserve(node, gateway, demandOf(2));
  await expect.poll(async () => (await rowOf(cluster.database, gateway, "cost r"))?.held).toBe(2_000_000);
  await node.declareDead();
  if (typeof settle === "function") settle(1);
  // Two dollars that the call held, and one that it has spent.
  await expect.poll(async () => usedOf(await rowOf(cluster.database, gateway, "cost r"))).toBe(3_000_000);
  const again = await reserve(node, gateway, demandOf(7));
  expect(again).toBeTypeOf("function");
  if (typeof again === "function") again(7);
});

it("keeps what was spent when the window of a rule changes, and follows the newer window everywhere", async () => {
  const [a, b] = nodes as [SharedNode, SharedNode];
  const rule = { id: "r", limitType: "cost", limit: 10, window: WINDOW_S };
  const gateway = gatewayWith({}, [rule]);
  const spend = async (node: SharedNode, own: Gateway, dollars: number) => {
    const settle = await reserve(node, own, demandOf(dollars));
    if (typeof settle !== "function") throw settle;
    settle(dollars);
  };
  await spend(a, gateway, 4);
  const monthly = withRules(gateway, [{ ...rule, window: "month" }]);
  await spend(b, monthly, 4);
  // This node does not have the new window yet.
  await spend(a, gateway, 1);
  expect(await reserve(a, gateway, demandOf(2))).toMatchObject({ id: "gateway_spend_limit" });
  expect(await reserve(b, monthly, demandOf(2))).toMatchObject({ fields: { spent: 9 } });
  expect(await rowOf(cluster.database, gateway, "cost r")).toMatchObject({ window_key: "month UTC" });
  const raised = withRules(gateway, [{ ...rule, window: "month", limit: 12 }]);
  await spend(a, raised, 2);
});

it("reports a soft budget once, whichever node exceeds it", async () => {
  const [a, b] = nodes as [SharedNode, SharedNode];
  const token = tokenWith({ softBudget: { limit: 1, window: "month", reset: "fixed", timezone: "UTC" } });
  const gateway = gatewayWith({});
  for (const node of [a, b, a, b, a, b]) {
    const rules = node.limits.rulesOf(gateway, token);
    rules?.settle(null, [{ provider: "openai", models: ["m"], cost: 0.3, tokens: 0 }]);
    await expect
      .poll(async () =>
        usedOf(
          await cluster.database.get(sql`SELECT used FROM limit_share WHERE owner = ${`token ${token.id}`}`),
        ),
      )
      .toBeGreaterThan(0);
  }
  await expect.poll(() => a.exceeded.length + b.exceeded.length).toBe(1);
});

it("shows at every node what all nodes have used", async () => {
  const [a, b] = nodes as [SharedNode, SharedNode];
  const gateway = gatewayWith({}, [{ id: "r", limitType: "cost", limit: 10, window: "month" }]);
  const settle = await reserve(a, gateway, demandOf(2));
  const held = await reserve(b, gateway, demandOf(3));
  if (typeof settle === "function") settle(2);
  await expect
    .poll(
      async () =>
        (await b.limits.stateOfRules(gatewayOwner(gateway), gateway.settings.spend_limits?.rules ?? []))[0],
    )
    .toMatchObject({ used: 2, reserved: 3, remaining: 5 });
  await expect
    .poll(
      async () =>
        (await a.limits.stateOfRules(gatewayOwner(gateway), gateway.settings.spend_limits?.rules ?? []))[0],
    )
    .toMatchObject({ used: 2, reserved: 3, remaining: 5 });
  if (typeof held === "function") held(0);
});

it("finds the most used limits of many owners, as other nodes have counted them", async () => {
  const [busy, other] = [nodes[0] as SharedNode, nodes[1] as SharedNode];
  const rules = [{ id: "r", limitType: "cost", limit: 10, window: null }];
  const owners = Array.from({ length: 450 }, () => {
    const gateway = gatewayWith({}, rules);
    const owner = gatewayOwner(gateway);
    return { gateway, owner, rules: toLimitRules(owner, "", gateway.settings.spend_limits?.rules ?? []) };
  });
  const spent = new Map([
    [3, 9],
    [250, 4],
    [449, 7],
  ]);
  for (const [i, dollars] of spent) {
    const { gateway } = owners[i] as (typeof owners)[0];
    const settle = await reserve(busy, gateway, demandOf(dollars));
    if (typeof settle !== "function") throw settle;
    settle(dollars);
  }
  const found = async () =>
    (await other.limits.mostUsed(owners, 2)).map(({ owned, state }) => [owners.indexOf(owned), state.used]);
  await expect.poll(found).toEqual([
    [3, 9],
    [449, 7],
  ]);
});
