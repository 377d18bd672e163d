import { expect, it } from "vitest";
import { bytes, count, duration, durationOf, money, moneyOf, share } from "./number.ts";
import { clockTime, dueTime, exactTime, pastTime } from "./time.ts";

const NOW = Date.parse("2026-06-01T12:00:00Z");

it.each([
  [0, "just now"],
  [4_000, "just now"],
  [-8_000, "just now"],
  [59_000, "59 s ago"],
  [60_000, "1 min ago"],
  [3_599_000, "59 min ago"],
  [86_400_000, "1 d ago"],
])("formats a time %d ms ago as %s", (distance, text) => {
  expect(pastTime(NOW - distance, NOW)).toBe(text);
});

it.each([
  [0, "now"],
  [8_000, "in 8 s"],
  [59_800, "in 1 min"],
  [7_200_000, "in 2 h"],
  [3 * 86_400_000 - 40_000, "in 3 d"],
  [30 * 86_400_000 - 10, "in 30 d"],
  [-60_000, "1 min ago"],
])("formats a time that is due in %d ms as %s", (distance, text) => {
  expect(dueTime(NOW + distance, NOW)).toBe(text);
});

it("formats a time more than a month away as a date", () => {
  expect(pastTime(NOW - 40 * 86_400_000, NOW)).toMatch(/2026/);
  expect(dueTime(NOW + 40 * 86_400_000, NOW)).toMatch(/2026/);
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

it("shows the amounts of a column with the digits of the smallest one", () => {
  const column = (...values: (number | null)[]) => values.map(moneyOf(values));
  expect(column(0.01, 0.0074, 0.00029, null)).toEqual(["$0.01000", "$0.00740", "$0.00029", "–"]);
  expect(column(12.5, 3, 0)).toEqual(["$12.50", "$3.00", "$0"]);
  // The digits of a column do not outgrow its largest amount.
  expect(column(1234.5, 0.00002)).toEqual(["$1,234.50", "<$0.01"]);
  expect(column()).toEqual([]);
  expect(column(0, 0)).toEqual(["$0", "$0"]);
});

it("shows the durations of a column in one unit", () => {
  const column = (...values: (number | null)[]) => values.map(durationOf(values));
  expect(column(0.42, 8, null)).toEqual(["0.4 ms", "8.0 ms", "–"]);
  expect(column(0.2, 5, 1234)).toEqual(["<1 ms", "5 ms", "1,234 ms"]);
  expect(column(5, 61_000)).toEqual(["0.01 s", "61.00 s"]);
});

it("shows exact times with their zone, and the clock of times of the last day", () => {
  expect(exactTime(NOW)).toMatch(/^1 Jun 2026, \d\d:00:00 \S+/);
  expect(clockTime(NOW - 1000, NOW)).toMatch(/^\d\d:59:59$/);
  expect(clockTime(NOW - 2 * 86_400_000, NOW)).toMatch(/^30 May, \d\d:00$/);
});
