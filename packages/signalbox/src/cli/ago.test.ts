import { expect, it } from "vitest";
import { agoOf, spanOf } from "./ago.ts";

const NOW = 1_800_000_000_000;

it.each([
  [0, "0 s ago"],
  [59_999, "59 s ago"],
  [60_000, "1 min ago"],
  [7_200_000, "2 h ago"],
  [400 * 86_400_000, "400 d ago"],
  [-90_000, "in 1 min"],
])("%i ms before now is %s", (distance, text) => {
  expect(agoOf(NOW - distance, NOW)).toBe(text);
});

it.each([
  [2_592_000, "30 d"],
  [90, "90 s"],
  [3600, "1 h"],
  [300, "5 min"],
])("%i seconds are %s", (seconds, text) => {
  expect(spanOf(seconds)).toBe(text);
});
