import { expect, it } from "vitest";
import { isUlid, ulid, ulidFloor, ulidTime } from "./ulid.ts";

it("generates strictly increasing ids, also within a millisecond and after small steps back of the clock", () => {
  const start = Date.now() + 1000;
  const times = [start, start, start, start + 5, start + 1, start - 9_000, start + 6];
  const ids = times.flatMap((time) => Array.from({ length: 500 }, () => ulid(time)));
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(isUlid(id)).toBe(true);
});

it("generates distinct, increasing ids after the clock is set back by a day", () => {
  const real = Date.now();
  const before = Array.from({ length: 500 }, () => ulid(real));
  ulid(real + 86_400_000);
  const after = Array.from({ length: 500 }, () => ulid(real));
  expect(after.map(ulidTime)).toEqual(after.map(() => real));
  expect(after.toSorted()).toEqual(after);
  expect(new Set([...before, ...after]).size).toBe(1000);
});

it("contains its time, and the floor of a time sorts before all ids of that time", () => {
  const time = Date.now() + 100_000;
  const id = ulid(time);
  expect(ulidTime(id)).toBe(time);
  expect(ulidFloor(time) < id).toBe(true);
  expect(ulidFloor(time + 1) > id).toBe(true);
});

it("rejects text that is not a ULID", () => {
  for (const text of [
    "",
    "x",
    "8ZZZZZZZZZZZZZZZZZZZZZZZZZ",
    "01ARZ3NDEKTSV4RRFFQ69G5FA",
    "01arz3ndektsv4rrffq69g5fav",
  ]) {
    expect(isUlid(text)).toBe(false);
  }
});
