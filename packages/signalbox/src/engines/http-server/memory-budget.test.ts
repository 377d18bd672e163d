import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { MemoryBudget, type MemoryShare, type Upload } from "./memory-budget.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An upload that releases its bytes when it is cut, as the body reader does. */
function upload(share: MemoryShare, bytes: number): { upload: Upload; cuts: () => number } {
  let cuts = 0;
  const watched = share.watch(() => {
    cuts += 1;
    share.settle(watched);
    share.release(bytes);
  });
  watched.progress(bytes);
  expect(share.take(bytes, true)).toBe(true);
  return { upload: watched, cuts: () => cuts };
}

it("never exceeds its maximum, and can use released bytes again", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000 });
  const [one, other] = [budget.shareOf("one"), budget.shareOf("other")];
  expect(one.take(600)).toBe(true);
  expect([one.take(401), other.take(401), other.take(400)]).toEqual([false, false, false]);
  expect(other.take(300)).toBe(true);
  one.release(600);
  expect(other.take(500)).toBe(true);
  expect([budget.used, one.used, other.used]).toEqual([800, 0, 800]);
});

it("a holder that takes all it can leaves room for others, and most of all for small bodies", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000 });
  const [one, other] = [budget.shareOf("one"), budget.shareOf("other")];
  while (one.take(50)) continue;
  expect(one.used).toBe(700);
  while (other.take(10)) continue;
  expect(other.used).toBe(200);
  expect([budget.shareOf("third").take(10), budget.shareOf("third").take(60)]).toEqual([true, false]);
  expect(budget.shareOf("third").take(60, true)).toBe(true);
});

it("closes the bodies without data for the longest time if memory is needed, and none that makes progress", () => {
  const budget = new MemoryBudget({ maxBytes: 1300, stallMs: 60_000 });
  const share = budget.shareOf("one");
  const oldest = upload(share, 300);
  vi.advanceTimersByTime(500);
  const older = upload(share, 300);
  vi.advanceTimersByTime(1800);
  const busy = upload(share, 300);
  expect(share.take(200)).toBe(true);
  expect([oldest.cuts(), older.cuts(), busy.cuts()]).toEqual([1, 0, 0]);
  vi.advanceTimersByTime(300);
  busy.upload.progress(1);
  expect(share.take(900)).toBe(false);
  expect([older.cuts(), busy.cuts()]).toEqual([1, 0]);
});

it("a holder that needs room closes no body of another one", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 60_000 });
  const waiting = upload(budget.shareOf("one"), 400);
  vi.advanceTimersByTime(3000);
  expect(budget.shareOf("other").take(600)).toBe(false);
  expect(waiting.cuts()).toBe(0);
});

it("closes a body that is too slow, even if data continues to arrive", () => {
  const budget = new MemoryBudget({ maxBytes: 1_000_000, stallMs: 10_000 });
  const share = budget.shareOf("one");
  const stalled = upload(share, 50_000);
  const dripping = upload(share, 1000);
  const steady = upload(share, 20_000);
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
  const one = upload(budget.shareOf("one"), 10);
  const two = upload(budget.shareOf("two"), 10);
  expect(vi.getTimerCount()).toBe(1);
  budget.settle(one.upload);
  budget.settle(two.upload);
  vi.advanceTimersByTime(1000);
  expect(vi.getTimerCount()).toBe(0);
});

it("closes a body that is not complete after the total time", () => {
  const budget = new MemoryBudget({ maxBytes: 1_000_000, stallMs: 10_000, totalMs: 3000 });
  const endless = upload(budget.shareOf("one"), 10_000);
  for (let second = 0; second < 4; second++) {
    endless.upload.progress(10_000);
    vi.advanceTimersByTime(1000);
  }
  expect(endless.cuts()).toBe(1);
  expect(budget.used).toBe(0);
});

it("gives optional copies at most half of its memory", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000 });
  const share = budget.shareOf("one");
  expect(share.takeSpare(500)).toBe(true);
  expect(share.takeSpare(1)).toBe(false);
  expect(share.take(100)).toBe(true);
  share.release(200);
  expect(share.takeSpare(100)).toBe(true);
});

it("a pause of the process is not time in which a body made no progress", () => {
  const budget = new MemoryBudget({ maxBytes: 1000, stallMs: 10_000, totalMs: 20_000 });
  const share = budget.shareOf("one");
  const { upload: waiting, cuts } = upload(share, 600);
  const start = performance.now();
  vi.spyOn(performance, "now").mockImplementation(() => start + 30_000 + Date.now() - began);
  const began = Date.now();
  vi.advanceTimersByTime(1000);
  expect([cuts(), share.take(500)]).toEqual([0, false]);
  waiting.progress(1);
  vi.advanceTimersByTime(12_000);
  expect(cuts()).toBe(1);
  vi.restoreAllMocks();
});
