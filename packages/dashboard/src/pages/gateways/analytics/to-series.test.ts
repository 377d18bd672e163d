import { expect, it } from "vitest";
import { timesOf } from "../../../components/time-range/time-range.ts";
import { bucketTotals, groupTotals, pointSeries, sumSeries } from "./to-series.ts";
import type { Usage } from "./usage.ts";

const HOUR_MS = 3_600_000;
const FROM = Date.parse("2026-06-01T10:00:00Z");
const SPAN = { from: FROM, to: FROM + 3 * HOUR_MS, bucketMs: HOUR_MS };

/** All calls of a row take up to `slowest` milliseconds. */
const row = (hour: number, provider: string, calls: number, slowest = 100): Usage => ({
  hour: new Date(FROM + hour * HOUR_MS).toISOString(),
  provider,
  calls,
  errors: 0,
  cached: 0,
  tokens_in: 0,
  tokens_out: 0,
  tokens_in_cached: 0,
  tokens_out_reasoning: 0,
  durations: [{ le: slowest, calls }],
  cost: 0,
  duration_avg: null,
  duration_p50: null,
  duration_p95: null,
  duration_p99: null,
  streams: 0,
  time_to_first_token_p50: null,
  time_to_first_token_p95: null,
  time_to_first_token_p99: null,
});

it("returns every hour of the time span, including hours without calls", () => {
  expect(timesOf(SPAN)).toEqual([FROM, FROM + HOUR_MS, FROM + 2 * HOUR_MS]);
});

it("orders the series by calls and combines all but the first five into one", () => {
  const rows = ["a", "b", "c", "d", "e", "f", "g"].map((name, i) => row(i % 3, name, 10 - i));
  const series = sumSeries(groupTotals(rows, "provider", SPAN), ({ calls }) => calls);
  expect(series.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "e", "Other"]);
  expect(series[0]?.values).toEqual([10, 0, 0]);
  expect(series[5]?.values).toEqual([4, 0, 5]);
});

it("returns null for buckets without a value, and no percentile of the other groups", () => {
  const groups = groupTotals([row(1, "a", 1, 200)], "provider", SPAN);
  expect(pointSeries(groups, (total) => total.duration_p50)).toEqual([
    { name: "a", values: [null, 100, null] },
  ]);
  const rows = ["a", "b", "c", "d", "e", "f"].map((name) => row(0, name, 1));
  const names = pointSeries(groupTotals(rows, "provider", SPAN), ({ calls }) => calls).map(
    ({ name }) => name,
  );
  expect(names).not.toContain("Other");
});

it("adds up all hours of a bucket; its percentiles are those of all its calls", () => {
  const rows = [row(0, "a", 2), row(0, "b", 3), row(2, "a", 1)];
  expect(bucketTotals(rows, SPAN).map((total) => total?.calls ?? null)).toEqual([5, null, 1]);
  const start = Math.floor(FROM / (6 * HOUR_MS)) * 6 * HOUR_MS;
  const wide = { from: start, to: start + 6 * HOUR_MS, bucketMs: 6 * HOUR_MS };
  const slow = [
    row(0, "a", 10),
    {
      ...row(1, "a", 10),
      durations: [
        { le: 100, calls: 0 },
        { le: 900, calls: 10 },
      ],
    },
  ];
  const [total] = bucketTotals(slow, wide);
  expect(total?.calls).toBe(20);
  expect(total?.duration_p50).toBe(100);
  expect(total?.duration_p95).toBeGreaterThan(700);
});
