import { expect, it } from "vitest";
import { LATENCY_BUCKETS_MS } from "../../engines/call-log/index.ts";
import { percentile } from "./percentiles.ts";

const histogram = (counts: Record<number, number>) =>
  [...LATENCY_BUCKETS_MS, Number.POSITIVE_INFINITY].map((_, i) => counts[i] ?? 0);

it("is null without calls", () => {
  expect(percentile(histogram({}), 0.5)).toBeNull();
});

it("interpolates within the bucket that contains the share", () => {
  expect(percentile(histogram({ 0: 10 }), 0.5)).toBe(2.5);
  expect(percentile(histogram({ 0: 50, 4: 50 }), 0.75)).toBe(75);
  expect(percentile(histogram({ 0: 50, 4: 50 }), 0.5)).toBe(5);
});

it("is the largest bound if the share lies above all bounds", () => {
  expect(percentile(histogram({ 14: 3 }), 0.99)).toBe(120_000);
  expect(percentile(histogram({ 0: 1, 14: 99 }), 0.5)).toBe(120_000);
});
