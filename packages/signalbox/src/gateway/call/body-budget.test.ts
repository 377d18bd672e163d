import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BodyBudget, type Upload } from "./body-budget.ts";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** An upload that gives its bytes back when it is cut, as bodies do. */
function upload(budget: BodyBudget, bytes: number): { upload: Upload; cuts: string[] } {
  const cuts: string[] = [];
  const watched = budget.watch((reason) => {
    cuts.push(reason.id);
    budget.settle(watched);
    budget.give(bytes);
  });
  watched.progress(bytes);
  expect(budget.take(bytes)).toBe(true);
  return { upload: watched, cuts };
}

it("never takes more than it has, and takes again what was given back", () => {
  const budget = new BodyBudget(1000, 10_000);
  expect(budget.take(600)).toBe(true);
  expect(budget.take(401)).toBe(false);
  expect(budget.take(400)).toBe(true);
  budget.give(600);
  expect(budget.take(600)).toBe(true);
  expect(budget.usedBytes).toBe(1000);
});

it("makes room by cutting the bodies that have waited longest, and no body that still comes", () => {
  const budget = new BodyBudget(1000, 60_000);
  const oldest = upload(budget, 300);
  vi.advanceTimersByTime(500);
  const older = upload(budget, 300);
  vi.advanceTimersByTime(1800);
  const busy = upload(budget, 300);
  expect(budget.take(200)).toBe(true);
  expect([oldest.cuts, older.cuts, busy.cuts]).toEqual([["request_timeout"], [], []]);
  vi.advanceTimersByTime(300);
  busy.upload.progress(1);
  expect(budget.take(900)).toBe(false);
  expect([older.cuts, busy.cuts]).toEqual([["request_timeout"], []]);
});

it("cuts a body that comes too slowly, even if it never stands still", () => {
  const budget = new BodyBudget(1_000_000, 10_000);
  const stalled = upload(budget, 50_000);
  const dripping = upload(budget, 1000);
  const steady = upload(budget, 20_000);
  for (let second = 0; second < 25; second++) {
    dripping.upload.progress(10);
    steady.upload.progress(2048);
    vi.advanceTimersByTime(1000);
  }
  expect([stalled.cuts, dripping.cuts, steady.cuts]).toEqual([["request_timeout"], ["request_timeout"], []]);
  expect(budget.usedBytes).toBe(20_000);
});

it("has no timer when no body has arrived for a while", () => {
  const budget = new BodyBudget(1_000_000, 10_000);
  const one = upload(budget, 10);
  const two = upload(budget, 10);
  expect(vi.getTimerCount()).toBe(1);
  budget.settle(one.upload);
  budget.settle(two.upload);
  vi.advanceTimersByTime(1000);
  expect(vi.getTimerCount()).toBe(0);
});
