import { expect, it } from "vitest";
import { isUlid, ulid, ulidFloor, ulidTime } from "./ulid.ts";

it("makes strictly increasing ids, also within a millisecond and when the clock steps back", () => {
  const start = Date.now() + 1000;
  const times = [start, start, start, start + 5, start + 1, start - 60_000, start + 6];
  const ids = times.flatMap((time) => Array.from({ length: 500 }, () => ulid(time)));
  expect(ids.toSorted()).toEqual(ids);
  expect(new Set(ids).size).toBe(ids.length);
  for (const id of ids) expect(isUlid(id)).toBe(true);
});

it("carries its time, and a time's floor sorts before every id of that time", () => {
  const time = Date.now() + 100_000;
  const id = ulid(time);
  expect(ulidTime(id)).toBe(time);
  expect(ulidFloor(time) < id).toBe(true);
  expect(ulidFloor(time + 1) > id).toBe(true);
});

it("knows what is not an id", () => {
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
