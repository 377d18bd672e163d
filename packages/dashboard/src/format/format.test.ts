import { expect, it } from "vitest";
import { bytes, count, duration, money, share } from "./number.ts";
import { shortTime } from "./time.ts";

const NOW = Date.parse("2026-06-01T12:00:00Z");

it.each([
  [0, "now"],
  [-4_000, "now"],
  [-59_000, "59 s ago"],
  [-60_000, "1 min ago"],
  [-3_599_000, "59 min ago"],
  [-86_400_000, "1 d ago"],
  [7_200_000, "in 2 h"],
])("formats a time %d ms from now as %s", (distance, text) => {
  expect(shortTime(NOW + distance, NOW)).toBe(text);
});

it("formats a time more than a month away as a date", () => {
  expect(shortTime(NOW - 40 * 86_400_000, NOW)).toMatch(/2026/);
});

it("keeps significant digits of small numbers and abbreviates large ones", () => {
  expect([money(0), money(0.00031), money(0.0123), money(12.5), money(null)]).toEqual([
    "$0",
    "$0.00031",
    "$0.012",
    "$12.50",
    "–",
  ]);
  expect([count(999), count(9_999), count(12_345)]).toEqual(["999", "9,999", "12.3K"]);
  expect([
    duration(0),
    duration(0.42),
    duration(512),
    duration(1_234),
    duration(61_000),
    duration(null),
  ]).toEqual(["0 ms", "0.4 ms", "512 ms", "1.23 s", "1 min 1 s", "–"]);
  expect([bytes(12), bytes(2048), bytes(3 * 1024 * 1024)]).toEqual(["12 B", "2.0 KiB", "3.0 MiB"]);
  expect([share(1, 8), share(0, 0)]).toEqual(["12.5%", "–"]);
});
