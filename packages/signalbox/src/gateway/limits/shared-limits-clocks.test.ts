/** Nodes whose clocks are wrong: windows begin and end by the clock of PostgreSQL. */
import { afterAll, beforeAll, expect, it } from "vitest";
import type { Gateway } from "../settings/gateway.ts";
import {
  aboutAnHour,
  gatewayWith,
  openSharedCluster,
  request,
  rowOf,
  type SharedCluster,
  type SharedNode,
  usedOf,
} from "./shared-limits-fixture.ts";

const HOUR = 3_600_000;
let cluster: SharedCluster;
let right: SharedNode;

beforeAll(async () => {
  cluster = await openSharedCluster();
  right = await cluster.openNode();
});
afterAll(async () => {
  expect(cluster.errors).toEqual([]);
  await cluster.close();
});

/** A limit whose window ends within the hour, and of which nothing is left. */
async function exhausted(technique: "fixed" | "sliding"): Promise<Gateway> {
  const settings = { rate_limiting_limit: 5, rate_limiting_interval: aboutAnHour() };
  const gateway = gatewayWith({ ...settings, rate_limiting_technique: technique });
  for (let i = 0; i < 5; i++) expect(await request(right, gateway)).toBeNull();
  await expect.poll(async () => (await row(gateway))?.spare).toBe(0);
  return gateway;
}

const row = (gateway: Gateway) => rowOf(cluster.database, gateway, "requests /rate_limiting");

it.each([
  ["ahead", "fixed", 2 * HOUR],
  ["ahead", "sliding", 2 * HOUR],
  ["behind", "fixed", -2 * HOUR],
  ["behind", "sliding", -2 * HOUR],
] as const)("a node whose clock is %s starts no new window (%s)", async (_text, technique, offset) => {
  const gateway = await exhausted(technique);
  const wrong = await cluster.openNode({ now: () => Date.now() + offset });
  expect(await request(wrong, gateway)).toMatchObject({ id: "gateway_rate_limited" });
  expect(await request(right, gateway)).toMatchObject({ id: "gateway_rate_limited" });
  expect(usedOf(await row(gateway))).toBe(5);
});

it("a clock that is set ahead starts no new window, and what was used before is counted", async () => {
  let offset = 0;
  const node = await cluster.openNode({ now: () => Date.now() + offset });
  const gateway = gatewayWith({ rate_limiting_limit: 50, rate_limiting_interval: 2 * aboutAnHour() });
  for (let i = 0; i < 30; i++) expect(await request(node, gateway)).toBeNull();
  offset = 4 * HOUR;
  for (let i = 0; i < 20; i++) expect(await request(node, gateway)).toBeNull();
  expect(await request(node, gateway)).toMatchObject({ id: "gateway_rate_limited" });
  expect(await request(right, gateway)).toMatchObject({ id: "gateway_rate_limited" });
  expect(usedOf(await row(gateway))).toBe(50);
});
