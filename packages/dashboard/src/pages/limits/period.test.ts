import { expect, it } from "vitest";
import { fromPeriod, toPeriod, windowText, windowTitle } from "./period.ts";

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
  expect([90, 2_592_000, "day", null].map((window) => windowTitle(window as 90))).toEqual([
    "per 90 s",
    "per 30 d",
    "per day",
    "in total",
  ]);
  expect(windowText("per 3600 s (fixed)")).toBe("per 1 h (fixed)");
});
