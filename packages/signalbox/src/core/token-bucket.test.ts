import { expect, it } from "vitest";
import { CreationRate } from "./creation-rate.ts";

it("allows a minute's worth at once, then one at a time, and returns the time to wait", () => {
  let now = 0;
  const rate = new CreationRate(6, () => now);
  expect(Array.from({ length: 7 }, () => rate.take())).toEqual([0, 0, 0, 0, 0, 0, 10_000]);
  now += 4000;
  expect(rate.take()).toBeCloseTo(6000);
  now += 6001;
  expect(rate.take()).toBe(0);
  expect(rate.take()).toBeGreaterThan(9000);
  // The bucket never holds more than a minute's worth.
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
