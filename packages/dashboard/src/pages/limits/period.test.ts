import { expect, it } from "vitest";
import { fromPeriod, toPeriod, windowTitle } from "./period.ts";

it.each([
  { window: 60, isSliding: true, timezone: undefined },
  { window: 3600, isSliding: false, timezone: undefined },
  { window: "day", isSliding: false, timezone: "Europe/Berlin" },
  { window: "month", isSliding: false, timezone: undefined },
  { window: null, isSliding: false, timezone: undefined },
] as const)("a form keeps $window", (members) => {
  expect(fromPeriod(toPeriod(members))).toEqual(members);
});

it("names a window", () => {
  expect([60, "day", null].map((window) => windowTitle(window as 60))).toEqual([
    "per 60 s",
    "per day",
    "in total",
  ]);
});
