import fc from "fast-check";
import { expect, it } from "vitest";
import { AmountBucket } from "./amount-bucket.ts";
import { createRateWindow, createWindow, NEVER, parseWindow } from "./window.ts";

const time = (text: string) => Date.parse(text);

it.each([
  ["day", "UTC", "2026-11-15T23:59:59Z", "2026-11-15T00:00:00Z", "2026-11-16T00:00:00Z"],
  ["week", "UTC", "2026-11-15T12:00:00Z", "2026-11-09T00:00:00Z", "2026-11-16T00:00:00Z"],
  ["month", "UTC", "2026-12-31T12:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"],
  ["day", "America/New_York", "2026-11-15T03:00:00Z", "2026-11-14T05:00:00Z", "2026-11-15T05:00:00Z"],
  // Clocks are set back: the day has 25 hours.
  ["day", "Europe/Berlin", "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"],
  ["month", "Europe/Berlin", "2026-10-31T23:30:00Z", "2026-10-31T23:00:00Z", "2026-11-30T23:00:00Z"],
  // Clocks are set forward at midnight: the day begins at one o'clock.
  ["day", "America/Santiago", "2026-09-06T12:00:00Z", "2026-09-06T04:00:00Z", "2026-09-07T03:00:00Z"],
] as const)("a %s in %s has the bounds of the calendar", (unit, zone, at, start, end) => {
  const window = createWindow(unit, "fixed", zone);
  expect(new Date(window.slotOf(time(at))).toISOString()).toBe(new Date(start).toISOString());
  expect(new Date(window.endOf(window.slotOf(time(at)))).toISOString()).toBe(new Date(end).toISOString());
});

it("slots follow each other without gaps, in every zone", () => {
  const zones = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kathmandu",
    "America/Santiago",
    "Pacific/Apia",
  ];
  fc.assert(
    fc.property(
      fc.constantFrom("day", "week", "month"),
      fc.constantFrom(...zones),
      fc.integer({ min: time("2011-01-01T00:00:00Z"), max: time("2040-01-01T00:00:00Z") }),
      (unit, zone, at) => {
        const window = createWindow(unit, "fixed", zone);
        const start = window.slotOf(at);
        const end = window.endOf(start);
        expect(start).toBeLessThanOrEqual(at);
        expect(end).toBeGreaterThan(at);
        expect(window.slotOf(start)).toBe(start);
        expect(window.slotOf(end)).toBe(end);
        expect(window.slotOf(end - 1)).toBe(start);
      },
    ),
    { numRuns: 300 },
  );
});

it.each(["fixed", "sliding"] as const)(
  "a %s rate window never allows more than its limit in its interval",
  (technique) => {
    const calls = fc.array(fc.integer({ min: 0, max: 9000 }), { minLength: 1, maxLength: 400 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 80 }), calls, (limit, waits) => {
        const bucket = new AmountBucket(createRateWindow(limit, 60, technique));
        const passed: number[] = [];
        let now = 0;
        for (const wait of waits) {
          now += wait;
          if (bucket.used(now) >= limit) continue;
          bucket.add(bucket.window.slotOf(now), 1);
          passed.push(now);
        }
        const length = 60_000;
        for (const at of passed) {
          const from = technique === "fixed" ? Math.floor(at / length) * length : at;
          const count = passed.filter((one) => one >= from && one < from + length).length;
          expect(count).toBeLessThanOrEqual(limit);
        }
      }),
    );
  },
);

it("a sliding rate window with a small limit opens exactly after its interval", () => {
  const bucket = new AmountBucket(createRateWindow(1, 60, "sliding"));
  bucket.add(bucket.window.slotOf(500), 1);
  expect([bucket.msUntilUsedIs(0, 500), bucket.used(60_499), bucket.used(60_500)]).toEqual([60_000, 1, 0]);
});

it("credit has one slot that never ends", () => {
  const window = createWindow(null);
  expect(window.slotOf(time("2040-01-01T00:00:00Z"))).toBe(window.slotOf(0));
  expect(window.endOf(0)).toBe(NEVER);
});

it.each([
  createWindow(60),
  createWindow(7, "sliding"),
  createWindow(3600, "sliding"),
  createRateWindow(5, 60, "sliding"),
  createWindow("day", "fixed", "Europe/Berlin"),
  createWindow("month"),
  createWindow(null),
])(
  "the oldest slot that counts is the first whose end is later ($key), and the key describes the window",
  (window) => {
    const start = Date.UTC(2030, 2, 31);
    for (let time = start; time < start + 7_200_000; time += 9_973) {
      const oldest = window.oldestAt(time);
      expect(window.endOf(oldest)).toBeGreaterThan(time);
      expect(window.slotOf(oldest)).toBe(oldest);
      if (oldest > 0) expect(window.endOf(window.slotOf(oldest - 1))).toBeLessThanOrEqual(time);
    }
    const parsed = parseWindow(window.key);
    expect([parsed.key, parsed.slotOf(start), parsed.endOf(parsed.slotOf(start))]).toEqual([
      window.key,
      window.slotOf(start),
      window.endOf(window.slotOf(start)),
    ]);
  },
);
