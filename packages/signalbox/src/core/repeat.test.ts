import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { repeat } from "./repeat.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const unexpected = (error: unknown): never => {
  throw error;
};

it("starts each run one interval after the end of the previous run", async () => {
  let runs = 0;
  let end: (() => void) | undefined;
  const repetition = repeat(
    100,
    () => {
      runs += 1;
      return new Promise<void>((resolve) => (end = resolve));
    },
    unexpected,
  );
  await vi.advanceTimersByTimeAsync(1000);
  expect(runs).toBe(1);
  end?.();
  await vi.advanceTimersByTimeAsync(99);
  expect(runs).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(runs).toBe(2);
  end?.();
  await repetition.stop();
});

it("reports a run that throws or rejects, and continues", async () => {
  const errors: unknown[] = [];
  let runs = 0;
  const repetition = repeat(
    10,
    () => {
      runs += 1;
      if (runs === 1) throw new Error("thrown");
      return Promise.reject(new Error("rejected"));
    },
    (error) => errors.push((error as Error).message),
  );
  await vi.advanceTimersByTimeAsync(20);
  expect(errors).toEqual(["thrown", "rejected"]);
  await repetition.stop();
});

it("stop waits for the current run, and no further run begins", async () => {
  let runs = 0;
  let end: (() => void) | undefined;
  const repetition = repeat(
    10,
    () => {
      runs += 1;
      return new Promise<void>((resolve) => (end = resolve));
    },
    unexpected,
  );
  await vi.advanceTimersByTimeAsync(10);
  let isStopped = false;
  const stopped = repetition.stop().then(() => (isStopped = true));
  await vi.advanceTimersByTimeAsync(100);
  expect(isStopped).toBe(false);
  end?.();
  await stopped;
  await vi.advanceTimersByTimeAsync(100);
  expect(runs).toBe(1);
});
