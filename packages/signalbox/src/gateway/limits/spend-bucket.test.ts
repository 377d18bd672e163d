import fc from "fast-check";
import { expect, it } from "vitest";
import { SpendBucket } from "./spend-bucket.ts";

it("resets a fixed window at its end, and not before", () => {
  const bucket = new SpendBucket(1000, "fixed");
  bucket.add(bucket.slotOf(5100), 7);
  expect(bucket.spent(5999)).toBe(7);
  expect(bucket.msUntilSpentIs(0, 5999)).toBe(1);
  expect(bucket.msUntilSpentIs(7, 5999)).toBe(0);
  expect(bucket.spent(6000)).toBe(0);
});

it("counts at least everything spent within a sliding window", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat({ max: 300 }), fc.nat({ max: 100 })), { minLength: 1, maxLength: 100 }),
      (steps) => {
        const bucket = new SpendBucket(1000, "sliding");
        const spent: { time: number; amount: number }[] = [];
        let now = 50_000;
        for (const [step, amount] of steps) {
          now += step;
          const inside = spent.filter(({ time }) => time > now - 1000);
          const atMost = spent.filter(({ time }) => time > now - 1000 - 2 * bucket.slotMs);
          const sum = (list: typeof spent) => list.reduce((total, entry) => total + entry.amount, 0);
          expect(bucket.spent(now)).toBeGreaterThanOrEqual(sum(inside));
          expect(bucket.spent(now)).toBeLessThanOrEqual(sum(atMost));
          bucket.add(bucket.slotOf(now), amount);
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
        const bucket = new SpendBucket(1000, "sliding");
        let now = 50_000;
        for (const [step, amount] of steps) bucket.add(bucket.slotOf((now += step)), amount);
        const waitMs = bucket.msUntilSpentIs(allowed, now);
        if (waitMs > 0) expect(bucket.spent(now + waitMs - 1)).toBeGreaterThan(allowed);
        expect(bucket.spent(now + waitMs)).toBeLessThanOrEqual(allowed);
      },
    ),
  );
});

it.each(["fixed", "sliding"] as const)(
  "counts what was spent while the clock ran ahead for one window after it was set right (%s)",
  (technique) => {
    const bucket = new SpendBucket(60_000, technique);
    bucket.add(bucket.slotOf(86_400_000), 7);
    const now = 120_000;
    expect(bucket.spent(now)).toBe(7);
    expect(bucket.spent(now + 59_999)).toBe(7);
    expect(bucket.spent(now + 62_000)).toBe(0);
  },
);
