import { expect, it } from "vitest";
import { labelPlaces, niceTicks } from "./scale.ts";

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

it("returns only integers for counts, and an axis on which a single one is low", () => {
  expect(niceTicks(1, true)).toEqual([0, 1, 2, 3, 4]);
  for (const max of [1, 2, 3, 4, 7, 9, 30]) {
    expect(niceTicks(max, true).every(Number.isInteger)).toBe(true);
  }
});

it("labels places without overlap, and only where the text changes", () => {
  const hours = Array.from({ length: 24 }, (_, hour) => `${hour}:00`);
  expect(labelPlaces(hours, 30, 80)).toEqual([0, 3, 6, 9, 12, 15, 18, 21]);
  expect(labelPlaces(["a", "b", "c"], 100, 80)).toEqual([0, 1, 2]);
  const days = ["Mon", "Mon", "Tue", "Tue", "Tue", "Wed", "Wed"];
  expect(labelPlaces(days, 40, 80)).toEqual([0, 2, 5]);
  expect(labelPlaces(days, 20, 80)).toEqual([0, 5]);
});
