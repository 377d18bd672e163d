import { expect, it } from "vitest";
import { Silences } from "./silences.ts";

const NODE = { inc: "7", beats: "20", ageMs: 2600, deadAfterMs: 2500 };
const LATER = 1_000_000;
const at = (time: number) => ({ sentAt: time, receivedAt: time });

/** How many heartbeats of the observer it takes, at most ten; all of them at the same time. */
function looksUntilDead(silences: Silences, node: typeof NODE): number {
  for (let look = 1; look <= 10; look++) if (silences.findDead([node], at(LATER)).length > 0) return look;
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

it("a clock of PostgreSQL that was set back does not keep a silent node alive", () => {
  const silences = new Silences(0);
  const inTheFuture = { ...NODE, ageMs: -20_000 };
  const looks = Array.from({ length: 8 }, (_, i) => at(LATER + i * 500));
  const dead = looks.map((look) => silences.findDead([inTheFuture], look).length);
  // More than 2.5 s after the first look.
  expect(dead).toEqual([0, 0, 0, 0, 0, 0, 1, 1]);
});

it("a heartbeat may have come at any time until the answer that shows it", () => {
  const silences = new Silences(0);
  const look = (sentAt: number, receivedAt: number) =>
    silences.findDead([{ ...NODE, ageMs: -20_000 }], { sentAt, receivedAt }).length;
  expect(look(10_000, 14_000)).toBe(0);
  for (let i = 0; i < 5; i++) expect(look(16_500, 16_500)).toBe(0);
  expect(look(16_501, 16_501)).toBe(1);
});

it("each heartbeat of the other node begins a new silence", () => {
  const silences = new Silences(0);
  for (let beats = 1; beats <= 20; beats++)
    for (let look = 1; look <= 4; look++)
      expect(silences.findDead([{ ...NODE, beats: String(beats) }], at(LATER))).toEqual([]);
});

it("after a gap of the observer, the others have as many heartbeats of time as at any other time", () => {
  const silences = new Silences(0);
  for (let beats = 1; beats <= 10; beats++)
    silences.findDead([{ ...NODE, beats: String(beats), ageMs: 100 }], at(0));
  expect(looksUntilDead(silences, { ...NODE, beats: "10", ageMs: 60_000 })).toBe(4);
});

it("nobody is dead for an observer whose session is new", () => {
  const silences = new Silences(LATER - 2500);
  expect(looksUntilDead(silences, NODE)).toBe(Infinity);
  expect(silences.findDead([NODE], at(LATER + 1))).toEqual([NODE]);
});

it("forgets nodes that are gone", () => {
  const silences = new Silences(0);
  for (let look = 1; look <= 4; look++) silences.findDead([NODE], at(LATER));
  silences.findDead([], at(LATER));
  expect(silences.findDead([NODE], at(LATER))).toEqual([]);
});
