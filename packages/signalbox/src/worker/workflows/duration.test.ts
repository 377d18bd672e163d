import fc from "fast-check";
import { expect, test } from "vitest";
import { parseDuration, parseTime } from "./duration.ts";

test.each([
  [1500, 1500],
  ["1 second", 1000],
  ["10 minutes", 600_000],
  ["24 hours", 86_400_000],
  ["7 days", 604_800_000],
  ["1.5 hours", 5_400_000],
] as const)("%s is %i ms", (text, ms) => expect(parseDuration(text)).toBe(ms));

test("other texts and numbers are refused", () => {
  for (const text of [
    "",
    "soon",
    "10",
    "10 parsecs",
    "-1 day",
    -1,
    Number.NaN,
    Infinity,
    null,
    undefined,
    {},
  ])
    expect(() => parseDuration(text)).toThrow(/a duration is/);
  expect(() => parseTime("tomorrow")).toThrow(/a time is/);
  expect(() => parseTime(new Date("x"))).toThrow(/a time is/);
});

test("every number of every unit is read", () => {
  fc.assert(
    fc.property(fc.nat(10_000), fc.constantFrom("second", "minute", "hour", "day", "week"), (count, unit) => {
      expect(parseDuration(`${count} ${unit}s`)).toBe(parseDuration(`${count} ${unit}`));
      expect(parseDuration(`${count} ${unit}`)).toBe(count * parseDuration(`1 ${unit}`));
    }),
  );
});
