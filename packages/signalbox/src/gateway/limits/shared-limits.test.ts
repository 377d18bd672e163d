import { afterAll, beforeAll, expect, it } from "vitest";
import {
  gatewayWith,
  openSharedCluster,
  request,
  rowOf,
  type SharedCluster,
  type SharedNode,
  usedOf,
} from "./shared-limits-fixture.ts";

let cluster: SharedCluster;
let nodes: SharedNode[];

beforeAll(async () => {
  cluster = await openSharedCluster();
  nodes = [];
  for (let i = 0; i < 4; i++) nodes.push(await cluster.openNode());
});
afterAll(() => cluster.close());

it("lets exactly the limit of requests pass, over four nodes with 64 callers each", async () => {
  const gateway = gatewayWith({ rate_limiting_limit: 1000, rate_limiting_interval: 3600 });
  let passed = 0;
  let refused = 0;
  const caller = async (node: SharedNode) => {
    for (let i = 0; i < 8; i++) {
      const refusal = await request(node, gateway);
      if (refusal === null) passed += 1;
      else {
        expect(refusal.id).toBe("gateway_rate_limited");
        refused += 1;
      }
    }
  };
  await Promise.all(nodes.flatMap((node) => Array.from({ length: 64 }, () => caller(node))));
  expect({ passed, refused }).toEqual({ passed: 1000, refused: 4 * 64 * 8 - 1000 });
  const row = await rowOf(cluster.database, gateway, "requests /rate_limiting");
  expect(usedOf(row)).toBe(1000);
});
