import { expect, it } from "vitest";
import { timesOf } from "../../../components/time-range/time-range.ts";
import { pointSeries, sumSeries, totalValues } from "./to-series.ts";
import type { Usage } from "./usage.ts";

const HOUR_MS = 3_600_000;
const FROM = Date.parse("2026-06-01T10:00:00Z");
const SPAN = { from: FROM, to: FROM + 3 * HOUR_MS, step: "hour" } as const;

const row = (hour: number, provider: string, calls: number, p95: number | null = null): Usage => ({
  hour: new Date(FROM + hour * HOUR_MS).toISOString(),
  provider,
  calls,
  errors: 0,
  cached: 0,
  tokens_in: 0,
  tokens_out: 0,
  tokens_in_cached: 0,
  tokens_out_reasoning: 0,
  durations: [],
  cost: 0,
  duration_avg: null,
  duration_p50: null,
  duration_p95: p95,
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
  const series = sumSeries(rows, "provider", timesOf(SPAN), ({ calls }) => calls);
  expect(series.map(({ name }) => name)).toEqual(["a", "b", "c", "d", "e", "Other"]);
  expect(series[0]?.values).toEqual([10, 0, 0]);
  expect(series[5]?.values).toEqual([4, 0, 5]);
});

it("returns null for hours without a value", () => {
  const series = pointSeries([row(1, "a", 1, 250)], "provider", timesOf(SPAN), (one) => one.duration_p95);
  expect(series).toEqual([{ name: "a", values: [null, 250, null] }]);
});

it("adds up all groups at a time, and has no value for times without calls", () => {
  const rows = [row(0, "a", 2), row(0, "b", 3), row(2, "a", 1)];
  expect(totalValues(rows, timesOf(SPAN), ({ calls }) => calls)).toEqual([5, null, 1]);
});
