import { setTimeout as sleep } from "node:timers/promises";
import { expect, it } from "vitest";
import { awakeSignal, awakeTime } from "./awake-time.ts";

/** As a pause of the process: all timers are late. */
function pause(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
}

it("a pause that is longer than the time does not end it", async () => {
  let isOver = false;
  const time = awakeTime(200).then(() => (isOver = true));
  pause(400);
  // One timer, while the rest of the time needs several, one after the other.
  await sleep(20);
  expect(isOver).toBe(false);
  await time;
});

it("no time is over at once", async () => {
  let isOver = false;
  void awakeTime(0).then(() => (isOver = true));
  await Promise.resolve();
  await Promise.resolve();
  expect(isOver).toBe(true);
});

it("a pause that is longer than the limit does not abort a signal; the time awake does", async () => {
  const signal = awakeSignal(200);
  pause(400);
  await sleep(20);
  expect(signal.aborted).toBe(false);
  await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
  expect(signal.reason).toMatchObject({ name: "TimeoutError", message: "no answer within 200 ms" });
});
