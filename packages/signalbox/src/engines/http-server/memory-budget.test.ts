import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MemoryBudget, type Upload } from "./memory-budget.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An upload that releases its bytes when it is cut, as the body reader does. */
function upload(budget: MemoryBudget, bytes: number): { upload: Upload; cuts: () => number } {
  let cuts = 0;
  const watched = budget.watch(() => {
    cuts += 1;
    budget.settle(watched);
    budget.release(bytes);
  });
  watched.progress(bytes);
  expect(budget.take(bytes)).toBe(true);
  return { upload: watched, cuts: () => cuts };
}

it("never exceeds its maximum, and can use released bytes again", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000 });
  expect(budget.take(600)).toBe(true);
  expect(budget.take(401)).toBe(false);
  expect(budget.take(400)).toBe(true);
  budget.release(600);
  expect(budget.take(600)).toBe(true);
  expect(budget.used).toBe(1000);
});

it("closes the bodies without data for the longest time if memory is needed, and none that makes progress", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 60_000 });
  const oldest = upload(budget, 300);
  vi.advanceTimersByTime(500);
  const older = upload(budget, 300);
  vi.advanceTimersByTime(1800);
  const busy = upload(budget, 300);
  expect(budget.take(200)).toBe(true);
  expect([oldest.cuts(), older.cuts(), busy.cuts()]).toEqual([1, 0, 0]);
  vi.advanceTimersByTime(300);
  busy.upload.progress(1);
  expect(budget.take(900)).toBe(false);
  expect([older.cuts(), busy.cuts()]).toEqual([1, 0]);
});

it("closes a body that is too slow, even if data continues to arrive", () => {
  const budget = new MemoryBudget({ maxBytes: 1_000_000, stallMs: 10_000 });
  const stalled = upload(budget, 50_000);
  const dripping = upload(budget, 1000);
  const steady = upload(budget, 20_000);
  for (let second = 0; second < 25; second++) {
    dripping.upload.progress(10);
    steady.upload.progress(2048);
    vi.advanceTimersByTime(1000);
  }
  expect([stalled.cuts(), dripping.cuts(), steady.cuts()]).toEqual([1, 1, 0]);
  expect(budget.used).toBe(20_000);
});

it("stops its timer when no body is arriving", () => {
  const budget = new MemoryBudget({ maxBytes: 1_000_000, stallMs: 10_000 });
  const one = upload(budget, 10);
  const two = upload(budget, 10);
  expect(vi.getTimerCount()).toBe(1);
  budget.settle(one.upload);
  budget.settle(two.upload);
  vi.advanceTimersByTime(1000);
  expect(vi.getTimerCount()).toBe(0);
});

it("closes a body that is not complete after the total time", () => {
  const budget = new MemoryBudget({ maxBytes: 1_000_000, stallMs: 10_000, totalMs: 3000 });
  const endless = upload(budget, 10_000);
  for (let second = 0; second < 4; second++) {
    endless.upload.progress(10_000);
    vi.advanceTimersByTime(1000);
  }
  expect(endless.cuts()).toBe(1);
  expect(budget.used).toBe(0);
});

it("gives optional copies at most half of its memory", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000 });
  expect(budget.takeSpare(500)).toBe(true);
  expect(budget.takeSpare(1)).toBe(false);
  expect(budget.take(500)).toBe(true);
  budget.release(600);
  expect(budget.takeSpare(100)).toBe(true);
});

it("a pause of the process is not time in which a body made no progress", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000, totalMs: 20_000 });
  const { upload: waiting, cuts } = upload(budget, 600);
  const start = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => start + 30_000 + Date.now() - began);
  const began = Date.now();
  vi.advanceTimersByTime(1000);
  expect([cuts(), budget.take(500)]).toEqual([0, false]);
  waiting.progress(1);
  vi.advanceTimersByTime(12_000);
  expect(cuts()).toBe(1);
  vi.restoreAllMocks();
});
