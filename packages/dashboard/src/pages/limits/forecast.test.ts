import type { BudgetState } from "@signalbox/client";
import { expect, it } from "vitest";
import { usedUpAt } from "./forecast.ts";

const NOW = Date.parse("2026-11-11T00:00:00Z");
const BUDGET: BudgetState = {
  rule: "monthly",
  type: "cost",
  limit: 100,
  window: "per month",
  is_soft: false,
  partition: null,
  used: 50,
  reserved: 0,
  remaining: 50,
  reset_at: "2026-12-01T00:00:00Z",
};
const day = (budget: Partial<BudgetState>, now = NOW) => {
  const at = usedUpAt({ ...BUDGET, ...budget }, now);
  return at === null ? null : new Date(at).toISOString().slice(0, 10);
};

it("says when a limit is used up at the pace of its period", () => {
  // Half of it in ten days.
  expect(day({})).toBe("2026-11-21");
  expect(day({ used: 40, reserved: 10 })).toBe("2026-11-21");
  expect(day({ window: "per month (Europe/Berlin)", reset_at: "2026-11-30T23:00:00Z" })).toBe("2026-11-21");
  expect(day({ window: "per 2592000 s (fixed)" })).toBe("2026-11-21");
});

it("says nothing of a limit that lasts, is used up, has no beginning or has hardly begun", () => {
  expect(day({ used: 20 })).toBeNull();
  expect(day({ used: 100 })).toBeNull();
  expect(day({ window: "in total", reset_at: null })).toBeNull();
  expect(day({ window: "per 2592000 s (sliding)" })).toBeNull();
  expect(day({ used: 50 }, Date.parse("2026-11-01T01:00:00Z"))).toBeNull();
});
