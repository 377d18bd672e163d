import { expect, it } from "vitest";
import { labelEvery, niceTicks } from "./scale.ts";

it("returns round axis values up to at least the maximum", () => {
  expect(niceTicks(18, false)).toEqual([0, 5, 10, 15, 20]);
  expect(niceTicks(0.048, false)).toEqual([0, 0.02, 0.04, 0.06]);
  expect(niceTicks(0, false)).toEqual([0, 1]);
  for (const max of [0.001, 0.7, 1, 3, 99, 1234, 5e6]) {
    const ticks = niceTicks(max, false);
    expect(ticks.at(-1)).toBeGreaterThanOrEqual(max);
    expect(ticks.length).toBeLessThanOrEqual(6);
  }
});

it("returns only integers for counts", () => {
  for (const max of [1, 2, 3, 4, 7, 9, 30]) {
    expect(niceTicks(max, true).every(Number.isInteger)).toBe(true);
  }
});

it("skips labels that would overlap", () => {
  expect(labelEvery(24, 800, 80)).toBe(3);
  expect(labelEvery(3, 800, 80)).toBe(1);
  expect(labelEvery(24, 10, 80)).toBe(24);
});
