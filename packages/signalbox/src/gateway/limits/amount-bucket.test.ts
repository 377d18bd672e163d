import fc from "fast-check";
import { expect, it } from "vitest";
import { AmountBucket } from "./amount-bucket.ts";
import { createWindow } from "./window.ts";

it("resets a fixed window at its end, and not before", () => {
  const bucket = new AmountBucket(createWindow(1, "fixed"));
  bucket.add(bucket.window.slotOf(5100), 7);
  expect(bucket.used(5999)).toBe(7);
  expect(bucket.msUntilUsedIs(0, 5999)).toBe(1);
  expect(bucket.msUntilUsedIs(7, 5999)).toBe(0);
  expect(bucket.used(6000)).toBe(0);
});

it("counts at least everything spent within a sliding window", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: 300 }), fc.nat({ max: 100 })), { minLength: 1, maxLength: 100 }),
      (steps) => {
        const bucket = new AmountBucket(createWindow(1, "sliding"));
        const spent: { time: number; amount: number }[] = [];
        let now = 50_000;
        for (const [step, amount] of steps) {
          now += step;
          const inside = spent.filter(({ time }) => time > now - 1000);
          const atMost = spent.filter(({ time }) => time > now - 1000 - 2 * 17);
          const sum = (list: typeof spent) => list.reduce((total, entry) => total + entry.amount, 0);
          expect(bucket.used(now)).toBeGreaterThanOrEqual(sum(inside));
          expect(bucket.used(now)).toBeLessThanOrEqual(sum(atMost));
          bucket.add(bucket.window.slotOf(now), amount);
          spent.push({ time: now, amount });
        }
      },
    ),
  );
});

it("reports exactly when enough of the amount has left a sliding window", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: 300 }), fc.integer({ min: 1, max: 100 })), {
        minLength: 1,
        maxLength: 30,
      }),
      fc.nat({ max: 300 }),
      (steps, allowed) => {
        const bucket = new AmountBucket(createWindow(1, "sliding"));
        let now = 50_000;
        for (const [step, amount] of steps) bucket.add(bucket.window.slotOf((now += step)), amount);
        const waitMs = bucket.msUntilUsedIs(allowed, now);
        if (waitMs > 0) expect(bucket.used(now + waitMs - 1)).toBeGreaterThan(allowed);
        expect(bucket.used(now + waitMs)).toBeLessThanOrEqual(allowed);
      },
    ),
  );
});

it.each(["fixed", "sliding"] as const)(
  "counts what was spent while the clock ran ahead for one window after it was set right (%s)",
  (technique) => {
    const bucket = new AmountBucket(createWindow(60, technique));
    bucket.add(bucket.window.slotOf(86_400_000), 7);
    const now = 120_000;
    expect(bucket.used(now)).toBe(7);
    expect(bucket.used(now + 59_999)).toBe(7);
    expect(bucket.used(now + 62_000)).toBe(0);
  },
);

it("gives the same sum however often it was asked before", () => {
  const step = fc.tuple(fc.integer({ min: -500, max: 700 }), fc.nat({ max: 100 }), fc.boolean());
  fc.assert(
    fc.property(
      fc.array(step, { maxLength: 60 }),
      fc.constantFrom("fixed", "sliding"),
      (steps, technique) => {
        const window = createWindow(1, technique);
        const asked = new AmountBucket(window);
        let now = 50_000;
        for (const [ms, amount, isAdded] of steps) {
          now += ms;
          const fresh = new AmountBucket(window);
          for (const [slot, used] of asked.slots) fresh.add(slot, used);
          expect(asked.used(now)).toBe(fresh.used(now));
          if (isAdded) asked.add(window.slotOf(now), amount);
        }
      },
    ),
  );
});
