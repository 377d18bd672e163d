/** Rate elements whose counts nodes share, in a real PostgreSQL. */
import { expect, it, onTestFinished } from "vitest";
import { gatewayWith, openSharedCluster } from "../limits/shared-limits-fixture.ts";
import { RouteCounters } from "./route-counters.ts";
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
  const { ledger } = await cluster.openNode();
  const gateway = gatewayWith({});
  const counters = new RouteCounters(ledger);
  const count = () => counters.count(gateway, "route", BUDGET, null);
  const later = count();
  if (!(later instanceof Promise)) throw new Error("the first use of a count reads it");
  // The call has ended: it does not read the answer.
  const counted = await later;
  if (!("budget" in counted) || counted.budget === null) throw new Error("money is left");
  const bucket = counted.budget.buckets.find(null);
  expect(bucket.reserved).toBe(0);
  expect(await count()).toMatchObject({ budget: { partition: null } });
  expect(bucket.reserved).toBe(0);
});
