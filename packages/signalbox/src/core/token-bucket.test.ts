import { expect, it } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

it("allows its capacity at once, then one at a time, and returns the time to wait", () => {
  let now = 0;
  const rate = new TokenBucket(6, 60_000, () => now);
  expect(Array.from({ length: 7 }, () => rate.take())).toEqual([0, 0, 0, 0, 0, 0, 10_000]);
  now += 4000;
  expect(rate.take()).toBeCloseTo(6000);
  now += 6001;
  expect(rate.take()).toBe(0);
  expect(rate.take()).toBeGreaterThan(9000);
  // It never holds more than its capacity.
  now += 3_600_000;
  expect(Array.from({ length: 7 }, () => rate.take() > 0)).toEqual([
    false,
    false,
    false,
    false,
    false,
    false,
    true,
  ]);
});

it("loses nothing when its clock is set back", () => {
  let now = 100_000;
  const bucket = new TokenBucket(2, 1000, () => now);
  expect(bucket.take()).toBe(0);
  now = 0;
  expect(bucket.take()).toBe(0);
  expect(bucket.take()).toBeCloseTo(500);
  now += 500;
  expect(bucket.take()).toBe(0);
});
