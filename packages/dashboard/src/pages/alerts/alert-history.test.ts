import { expect, it } from "vitest";
import { deliveryHistory, firings, stepOf, windowsOf } from "./alert-history.ts";

it("a rule fires once until its value has fallen below the threshold", () => {
  expect(firings([0, 0.1, 0.2, null, 0.1, 0.04, 0.05], 0.05)).toBe(3);
  expect(firings([null, 0.04], 0.05)).toBe(0);
  expect(firings([], 1)).toBe(0);
});

it("windows are whole minutes or hours, and a day long together", () => {
  expect(stepOf(300, false)).toBe(300_000);
  expect(stepOf(90, false)).toBe(120_000);
  expect(stepOf(300, true)).toBe(3_600_000);
  const times = windowsOf(Date.parse("2026-06-01T12:34:56Z"), 3_600_000);
  expect(times).toHaveLength(24);
  expect(new Date(times.at(-1) ?? 0).toISOString()).toBe("2026-06-01T12:00:00.000Z");
});

it("windows without deliveries have none that failed", () => {
  const at = "2026-06-01T12:00:00.000Z";
  const step = { at, accepted: 5, duplicate: 0, rejected: 0, failed: 2 };
  const time = Date.parse(at);
  expect(deliveryHistory([step], [time - 60_000, time], 60_000).values).toEqual([0, 2]);
});
