import { expect, it } from "vitest";
import { Silences } from "./silences.ts";

const NODE = { inc: "7", beats: "20", ageMs: 2600, deadAfterMs: 2500 };
const LATER = 1_000_000;

/** How many heartbeats of the observer it takes, at most ten. */
function looksUntilDead(silences: Silences, node: typeof NODE): number {
  for (let look = 1; look <= 10; look++) if (silences.findDead([node], LATER).length > 0) return look;
  return Infinity;
}

it("a node seems dead when it is late and was silent for four heartbeats of the observer", () => {
  expect(looksUntilDead(new Silences(0), NODE)).toBe(5);
});

it("a node whose heartbeat is not late lives, however often it was seen", () => {
  expect(looksUntilDead(new Silences(0), { ...NODE, ageMs: 2500 })).toBe(Infinity);
});

it("a node has the time that it asked for", () => {
  expect(looksUntilDead(new Silences(0), { ...NODE, deadAfterMs: 10_000 })).toBe(Infinity);
  expect(looksUntilDead(new Silences(0), { ...NODE, deadAfterMs: 10_000, ageMs: 10_001 })).toBe(5);
});

it("each heartbeat of the other node begins a new silence", () => {
  const silences = new Silences(0);
  for (let beats = 1; beats <= 20; beats++)
    for (let look = 1; look <= 4; look++)
      expect(silences.findDead([{ ...NODE, beats: String(beats) }], LATER)).toEqual([]);
});

it("after a gap of the observer, the others have as many heartbeats of time as at any other time", () => {
  const silences = new Silences(0);
  for (let beats = 1; beats <= 10; beats++)
    silences.findDead([{ ...NODE, beats: String(beats), ageMs: 100 }], 0);
  expect(looksUntilDead(silences, { ...NODE, beats: "10", ageMs: 60_000 })).toBe(4);
});

it("nobody is dead for an observer whose session is new", () => {
  const silences = new Silences(LATER - 2500);
  expect(looksUntilDead(silences, NODE)).toBe(Infinity);
  expect(silences.findDead([NODE], LATER + 1)).toEqual(["7"]);
});

it("forgets nodes that are gone", () => {
  const silences = new Silences(0);
  for (let look = 1; look <= 4; look++) silences.findDead([NODE], LATER);
  silences.findDead([], LATER);
  expect(silences.findDead([NODE], LATER)).toEqual([]);
});
