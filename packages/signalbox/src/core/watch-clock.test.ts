import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { watchClock } from "./watch-clock.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

it("reports a clock that was set ahead, or back, once, and neither the time that passes nor small corrections", async () => {
  let wall = 1_000_000;
  let steady = 0;
  let steps = 0;
  const watch = watchClock(
    { now: () => wall },
    { now: () => steady },
    () => (steps += 1),
    () => undefined,
  );
  const look = () => vi.advanceTimersByTimeAsync(1000);
  const pass = (ms: number) => {
    wall += ms;
    steady += ms;
  };
  pass(60_000);
  await look();
  wall += 100;
  await look();
  expect(steps).toBe(0);
  wall += 3_600_000;
  await look();
  pass(1000);
  await look();
  expect(steps).toBe(1);
  wall -= 3_600_000;
  await look();
  await look();
  expect(steps).toBe(2);
  await watch.stop();
  wall += 3_600_000;
  await look();
  expect(steps).toBe(2);
});
