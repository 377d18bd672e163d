import fc from "fast-check";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Heartbeats } from "./heartbeats.ts";

const START = Date.UTC(2026, 10, 16);
beforeEach(() => {
  vi.useFakeTimers({ now: START });
});
afterEach(() => {
  vi.useRealTimers();
});

const beat = { members: [], count: 1, now: START, neededSchema: 0 };
const sent = () => ({ at: performance.now(), time: Date.now() });

it("a node without a heartbeat is not ready, and one is good for two seconds from the time it was sent", () => {
  const heartbeats = new Heartbeats(10);
  expect(heartbeats.problem).toBe("PostgreSQL cannot be reached");
  const early = sent();
  vi.advanceTimersByTime(1500);
  heartbeats.record(beat, early);
  expect(heartbeats.problem).toBe(null);
  vi.advanceTimersByTime(501);
  expect(heartbeats.problem).toBe("PostgreSQL cannot be reached");
});

it("a clock that is more than five seconds off is a problem, whatever its direction", () => {
  const heartbeats = new Heartbeats(10);
  heartbeats.record({ ...beat, now: START + 5001 }, sent());
  expect(heartbeats.problem).toBe("the clock of this machine is 5 s behind PostgreSQL's");
  heartbeats.record({ ...beat, now: START - 60_000 }, sent());
  expect(heartbeats.problem).toBe("the clock of this machine is 60 s ahead of PostgreSQL's");
  heartbeats.record({ ...beat, now: START + 4999 }, sent());
  expect(heartbeats.problem).toBe(null);
});

it("a read in place of a heartbeat keeps memory up to date, and the node is not ready", () => {
  const heartbeats = new Heartbeats(10);
  heartbeats.record(beat, sent());
  vi.advanceTimersByTime(60_000);
  heartbeats.recordRead(performance.now(), "PostgreSQL's disk is full");
  vi.advanceTimersByTime(1000);
  expect([heartbeats.isStale(2000), heartbeats.ageMs]).toEqual([false, 61_000]);
  expect(heartbeats.problem).toBe("PostgreSQL's disk is full");
  vi.advanceTimersByTime(1001);
  expect(heartbeats.problem).toBe("PostgreSQL cannot be reached");
});

it("a slow round trip never looks like a wrong clock", () => {
  fc.assert(
    fc.property(fc.nat(60_000), fc.double({ min: 0, max: 1, noNaN: true }), (tripMs, share) => {
      const heartbeats = new Heartbeats(10);
      const early = sent();
      vi.advanceTimersByTime(tripMs);
      heartbeats.record({ ...beat, now: early.time + Math.floor(tripMs * share) }, early);
      expect(heartbeats.clockOffsetMs).toBe(0);
    }),
  );
});

it("a schema that only newer versions can use is a problem", () => {
  const heartbeats = new Heartbeats(10);
  heartbeats.record({ ...beat, neededSchema: 10 }, sent());
  expect([heartbeats.problem, heartbeats.isSchemaUnderstood]).toEqual([null, true]);
  heartbeats.record({ ...beat, neededSchema: 11 }, sent());
  expect([heartbeats.problem, heartbeats.isSchemaUnderstood]).toEqual([
    "the database has schema 11, and this version knows up to 10: upgrade this node",
    false,
  ]);
});
