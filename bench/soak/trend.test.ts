import { expect, it } from "vitest";
import { trendOf } from "./trend.ts";

const rising = Array.from({ length: 40 }, (_, i) => 100 + i);

it("a figure that rises over the whole run grows, and one that goes up and down or falls is flat", () => {
  expect(trendOf(rising)).toMatchObject({ first: 105, last: 135, isFlat: false });
  expect(trendOf(rising.toReversed())?.isFlat).toBe(true);
  expect(trendOf(rising.map((value, i) => (i % 2 === 0 ? value / 10 + 100 : 100)))?.isFlat).toBe(true);
});

it("one outlier is no trend, and a difference that does not count is none either", () => {
  expect(trendOf([...Array.from({ length: 39 }, () => 100), 1000])?.isFlat).toBe(true);
  expect(trendOf([1, 1, 1, 2, 2, 2, 3, 3], 5)?.isFlat).toBe(true);
  expect(trendOf([0, 0, 0, 0, 9, 9, 9, 9])?.isFlat).toBe(false);
});

it("too few readings have no trend", () => {
  expect(trendOf([1, 2, 3])).toBeNull();
});
