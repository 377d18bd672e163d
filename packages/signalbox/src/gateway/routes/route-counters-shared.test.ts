/** Rate elements whose counts nodes share, in a real PostgreSQL. */
import { expect, it, onTestFinished } from "vitest";
import { Delay } from "../step/delay.ts";
import { gatewayWith, openSharedCluster } from "../limits/shared-limits-fixture.ts";
import { type PendingCounts, RouteCounters } from "./route-counters.ts";
import type { RateElement } from "./route-graph.ts";

const BUDGET: RateElement = {
  id: "budget",
  type: "rate",
  limitType: "cost",
  key: null,
  limit: 1,
  windowS: 3600,
  technique: "fixed",
  success: "model",
  fallback: null,
};

it("a call that ends while it waits for a budget holds nothing of it", async () => {
  const cluster = await openSharedCluster();
  onTestFinished(() => cluster.close());
  const { limits } = await cluster.openNode();
  const gateway = gatewayWith({});
  const counters = new RouteCounters(limits);
  const pending: PendingCounts = new Map();
  const take = () => counters.take(gateway, "route", BUDGET, null, pending);
  const delayed = take();
  if (!(delayed instanceof Delay)) throw new Error("the first use of a count reads it");
  const bucket = [...pending.values()][0]?.parts[0]?.bucket;
  await delayed.ready;
  // The call has ended: it does not ask again.
  expect(bucket?.held).toBe(0);
  expect(take()).toMatchObject({ budget: { bucket } });
  expect(bucket?.held).toBe(0);
});
