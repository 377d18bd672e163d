import { expect, it } from "vitest";
import { SharedPlaces } from "./shared-pool.ts";

/** Takes pieces until there is no room; returns how much was taken. */
function takeAll(pool: SharedPlaces, holder: string, size = 1, isSmall = true): number {
  let taken = 0;
  while (pool.shareOf(holder).take(size, isSmall)) taken += size;
  return taken;
}

it("one holder alone gets two thirds; each of those that follow finds room, and all of it is never in use", () => {
  const pool = new SharedPlaces(900);
  expect(takeAll(pool, "a")).toBe(600);
  expect(takeAll(pool, "b")).toBe(200);
  expect(takeAll(pool, "c")).toBeGreaterThan(60);
  expect(takeAll(pool, "d")).toBeGreaterThan(20);
  expect(takeAll(pool, "a")).toBe(0);
  expect(pool.used).toBeLessThan(900);
});

it("what a holder releases is available to the others and to itself", () => {
  const pool = new SharedPlaces(900);
  takeAll(pool, "a");
  pool.shareOf("a").release(300);
  expect(takeAll(pool, "b")).toBe(400);
  pool.shareOf("a").release(300);
  pool.shareOf("b").release(400);
  expect([pool.used, pool.shareOf("a").used]).toEqual([0, 0]);
  expect(takeAll(pool, "a")).toBe(600);
});

it("a pool of one or two can be used", () => {
  for (const max of [1, 2]) expect(takeAll(new SharedPlaces(max), "a")).toBe(max);
});

it("large amounts leave room for small ones", () => {
  const pool = new SharedPlaces(1600);
  for (const holder of ["a", "b", "c", "d", "e", "f"]) takeAll(pool, holder, 10, false);
  expect(pool.used).toBeLessThanOrEqual(1500);
  expect(pool.shareOf("g").take(10, false)).toBe(false);
  expect(pool.shareOf("g").take(10, true)).toBe(true);
});
