import { expect, it } from "vitest";
import { totalOf } from "./usage-total.ts";
import type { Usage } from "./usage.ts";

const row = (calls: number, durations: Usage["durations"]) =>
  ({ calls, errors: 1, cached: 0, tokens_in: 10, tokens_out: 5, cost: 0.5, durations }) as Usage;

it("adds up rows and estimates percentiles from all their histograms", () => {
  const total = totalOf([
    row(2, [
      { le: 100, calls: 2 },
      { le: 200, calls: 0 },
      { le: null, calls: 0 },
    ]),
    row(2, [
      { le: 100, calls: 0 },
      { le: 200, calls: 2 },
      { le: null, calls: 0 },
    ]),
  ]);
  expect(total).toMatchObject({ calls: 4, errors: 2, tokens_in: 20, cost: 1, duration_p50: 100 });
  expect(total.duration_p95).toBeCloseTo(190);
});

it("has no percentile without calls, and the largest bound for slower calls", () => {
  expect(totalOf([]).duration_p50).toBeNull();
  const slow = row(1, [
    { le: 100, calls: 0 },
    { le: null, calls: 1 },
  ]);
  expect(totalOf([slow]).duration_p95).toBe(100);
});
