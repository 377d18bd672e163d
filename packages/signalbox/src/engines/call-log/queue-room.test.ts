import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { QueueRoom } from "./queue-room.ts";

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
    onStall: (error) => stalls.push(error.message),
    onRecovery: (dropped) => recoveries.push(dropped),
  });
});
afterEach(() => void vi.useRealTimers());

/** How many of so many callers that wait have gone on by now. */
function callers(count: number): () => number {
  let done = 0;
  for (let i = 0; i < count; i++) void room.wait().then(() => (done += 1));
  return () => done;
}

it("lets callers go on as commits make room, in order and no more than fit", async () => {
  const done = callers(3);
  await vi.advanceTimersByTimeAsync(1000);
  expect(done()).toBe(0);
  free = 2;
  room.committed();
  await vi.advanceTimersByTimeAsync(0);
  expect([done(), stalls]).toEqual([2, []]);
});

it("waits on for a log that makes room slowly, as long as it commits", async () => {
  const done = callers(1);
  for (let i = 0; i < 10; i++) {
    await vi.advanceTimersByTimeAsync(9000);
    room.committed();
  }
  expect([done(), room.stall, stalls]).toEqual([0, null, []]);
});

it("lets everybody go on when no commit comes in time, and drops and counts what does not fit", async () => {
  const done = callers(3);
  await vi.advanceTimersByTimeAsync(10_000);
  expect([done(), room.stall]).toEqual([3, "the disk does not answer"]);
  expect([room.isOpen, room.admits(), room.admits(), room.dropped]).toEqual([true, false, false, 2]);
  free = 1;
  expect([room.admits(), room.dropped]).toEqual([true, 2]);
  room.committed();
  expect([room.stall, recoveries]).toEqual([null, [2]]);
});

it("reports a stall once a minute, however often the writer fails, and the next one at once", async () => {
  for (let i = 0; i < 61; i++) {
    room.stalled("no room");
    await vi.advanceTimersByTimeAsync(1000);
  }
  expect(stalls).toHaveLength(2);
  room.committed();
  room.stalled("no room");
  expect(stalls).toHaveLength(3);
});
