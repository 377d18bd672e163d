/** Adds up usage rows, and estimates percentiles of all of them from their histograms. */
import type { Usage } from "./usage.ts";

export type UsageTotal = Pick<
  Usage,
  "calls" | "errors" | "cached" | "tokens_in" | "tokens_out" | "cost" | "duration_p50" | "duration_p95"
>;

export function totalOf(rows: readonly Usage[]): UsageTotal {
  const sum = (value: (row: Usage) => number) => rows.reduce((all, row) => all + value(row), 0);
  const histogram = new Map<number, number>();
  for (const { durations } of rows) {
    for (const { le, calls } of durations)
      histogram.set(le ?? Infinity, (histogram.get(le ?? Infinity) ?? 0) + calls);
  }
  return {
    calls: sum((row) => row.calls),
    errors: sum((row) => row.errors),
    cached: sum((row) => row.cached),
    tokens_in: sum((row) => row.tokens_in),
    tokens_out: sum((row) => row.tokens_out),
    cost: sum((row) => row.cost),
    duration_p50: percentile(histogram, 0.5),
    duration_p95: percentile(histogram, 0.95),
  };
}

/** Linear within a bucket, as the service computes it; null without calls. */
function percentile(histogram: ReadonlyMap<number, number>, share: number): number | null {
  const buckets = [...histogram].sort(([a], [b]) => a - b);
  const total = buckets.reduce((all, [, calls]) => all + calls, 0);
  if (total === 0) return null;
  let below = 0;
  let lower = 0;
  for (const [upper, calls] of buckets) {
    if (upper === Infinity) return lower;
    if (calls > 0 && below + calls >= total * share)
      return lower + ((upper - lower) * (total * share - below)) / calls;
    below += calls;
    lower = upper;
  }
  return lower;
}
