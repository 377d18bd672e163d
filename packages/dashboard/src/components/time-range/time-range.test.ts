import { expect, it } from "vitest";
import { perBucket, rangeBefore, resolveRange, timesOf } from "./time-range.ts";

const NOW = Date.parse("2026-06-01T12:34:56Z");
const iso = (time: number) => new Date(time).toISOString();
const resolve = (name: string, from = "", to = "") => resolveRange(name, from, to, NOW, "24h");

it.each([
  ["1h", "minute", "2026-06-01T11:35:00.000Z", "2026-06-01T12:35:00.000Z", 60],
  ["24h", "hour", "2026-05-31T13:00:00.000Z", "2026-06-01T13:00:00.000Z", 24],
  ["7d", "hour", "2026-05-25T13:00:00.000Z", "2026-06-01T13:00:00.000Z", 29],
  ["30d", "day", "2026-05-02T13:00:00.000Z", "2026-06-01T13:00:00.000Z", 31],
])("the range %s has steps of one %s and ends with the current one", (name, step, from, to, points) => {
  const range = resolve(name);
  expect([range.step, iso(range.from), iso(range.to)]).toEqual([step, from, to]);
  expect(timesOf(range)).toHaveLength(points);
});

it("takes any two times, to the end of their hours", () => {
  const range = resolve("custom", "2026-05-30T10:20:00Z", "2026-06-01T08:10:00Z");
  expect([range.name, range.step, iso(range.from), iso(range.to)]).toEqual([
    "custom",
    "hour",
    "2026-05-30T10:00:00.000Z",
    "2026-06-01T09:00:00.000Z",
  ]);
  expect(rangeBefore(range).to).toBe(range.from);
  expect(iso(rangeBefore(range).from)).toBe("2026-05-28T11:00:00.000Z");
});

it("begins later than asked if a chart would have too many days", () => {
  const range = resolve("custom", "0002-01-01T00:00:00Z", "2026-06-01T00:00:00Z");
  expect(timesOf(range)).toHaveLength(58);
});

it.each([
  ["custom", "", ""],
  ["custom", "nonsense", "2026-06-01T08:10:00Z"],
  ["custom", "2026-06-02T08:10:00Z", "2026-06-01T08:10:00Z"],
  ["no-such-range", "", ""],
])("falls back to the default for %s from %s to %s", (name, from, to) => {
  expect(resolve(name, from, to)).toEqual(resolve("24h"));
});

it.each([
  ["1h", "per minute"],
  ["24h", "per hour"],
  ["7d", "per 6 hours"],
  ["30d", "per day"],
])("the bars of %s are sums %s", (name, per) => {
  expect(perBucket(resolve(name))).toBe(per);
});
