import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { QueueRoom } from "./row-queue.ts";

let free: number;
let stalls: string[];
let recoveries: number[];
let room: QueueRoom;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  free = 0;
  stalls = [];
  recoveries = [];
  room = new QueueRoom({
    free: () => free,
    silenceReason: "the disk does not respond",
    onStall: (error) => stalls.push(error.message),
    onRecovery: (dropped) => recoveries.push(dropped),
  });
});
afterEach(() => void vi.useRealTimers());

/** Starts waiting callers; returns a function that counts those that have gone on. */
function callers(count: number): () => number {
  let done = 0;
  for (let i = 0; i < count; i++) void room.wait().then(() => (done += 1));
  return () => done;
}

it("lets callers go on in order as commits make room, and no more than fit", async () => {
  const done = callers(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(done()).toBe(0);
  free = 2;
  room.committed();
  await vi.advanceTimersByTimeAsync(0);
  expect([done(), stalls]).toEqual([2, []]);
});

it("keeps callers waiting while commits make no room", async () => {
  const done = callers(1);
  for (let i = 0; i < 10; i++) {
    await vi.advanceTimersByTimeAsync(9000);
    room.committed();
  }
  expect([done(), room.stall, stalls]).toEqual([0, null, []]);
});

it("stalls when no commit comes in time: all callers go on, and rows that do not fit are dropped and counted", async () => {
  const done = callers(3);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([done(), room.stall]).toEqual([3, "the disk does not respond"]);
  expect([room.isOpen, room.admits(), room.admits(), room.dropped]).toEqual([true, false, false, 2]);
  free = 1;
  expect([room.admits(), room.dropped]).toEqual([true, 2]);
  room.committed();
  expect([room.stall, recoveries]).toEqual([null, [2]]);
});

it("reports a stall once a minute, and the next stall at once", async () => {
  for (let i = 0; i < 61; i++) {
    room.failed("no room");
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(stalls).toHaveLength(2);
  room.committed();
  room.failed("no room");
  expect(stalls).toHaveLength(3);
});
