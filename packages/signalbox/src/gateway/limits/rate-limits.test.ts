import fc from "fast-check";
import { expect, it } from "vitest";
import { FixedWindowLimiter, SlidingWindowLimiter } from "./rate-limits.ts";

const gaps = fc.array(fc.nat({ max: 400 }), { minLength: 1, maxLength: 200 });

it("passes as many calls as the limit allows in any interval when sliding, and no more", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), gaps, (limit, steps) => {
      const limiter = new SlidingWindowLimiter(limit, 1000);
      const passed: number[] = [];
      let now = 1_000_000;
      for (const step of steps) {
        now += step;
        const inside = passed.filter((time) => time > now - 1000).length;
        const waitMs = limiter.take(now);
        expect(waitMs === null).toBe(inside < limit);
        if (waitMs === null) passed.push(now);
        else expect(waitMs).toBeGreaterThan(0);
      }
    }),
  );
});

it("passes as many calls as the limit allows in each clock window when fixed, and no more", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 40 }), gaps, (limit, steps) => {
      const limiter = new FixedWindowLimiter(limit, 1000);
      const counts = new Map<number, number>();
      let now = 1_000_000;
      for (const step of steps) {
        now += step;
        const window = Math.floor(now / 1000);
        const before = counts.get(window) ?? 0;
        const waitMs = limiter.take(now);
        expect(waitMs === null).toBe(before < limit);
        if (waitMs === null) counts.set(window, before + 1);
        else expect(now + waitMs).toBe((window + 1) * 1000);
      }
    }),
  );
});

it("passes a call exactly after the reported wait", () => {
  for (const Limiter of [FixedWindowLimiter, SlidingWindowLimiter]) {
    const limiter = new Limiter(2, 1000);
    limiter.take(5100);
    limiter.take(5200);
    const waitMs = limiter.take(5300) ?? 0;
    expect(limiter.take(5300 + waitMs - 1)).not.toBeNull();
    expect(limiter.take(5300 + waitMs)).toBeNull();
  }
});

it("does not reopen a window when the clock steps back", () => {
  const limiter = new FixedWindowLimiter(1, 1000);
  expect(limiter.take(5500)).toBeNull();
  expect(limiter.take(4500)).not.toBeNull();
});
