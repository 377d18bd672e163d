import { setImmediate as nextIteration } from "node:timers/promises";
import { expect, it } from "vitest";
import { LoopShare } from "./loop-share.ts";

/** Steps of that many milliseconds of a clock that only they move; returns how many of them began in each iteration of the event loop. */
async function run(count: number, stepMs: number, budgetMs: number): Promise<number[]> {
  let now = 0;
  let begun = 0;
  const share = new LoopShare(budgetMs, () => now);
  const work = (async () => {
    for (let i = 0; i < count; i++) {
      await share.step();
      begun += 1;
      // Most of the work of a step follows in microtasks.
      for (let ticks = 0; ticks < 50; ticks++) await Promise.resolve();
      now += stepMs;
    }
  })();
  const begunIn: number[] = [];
  for (let before = 0; begun < count; before = begun) {
    await nextIteration();
    if (begun > before) begunIn.push(begun - before);
  }
  await work;
  return begunIn;
}

it("steps begin within the budget of an iteration of the event loop, also if their work is done in microtasks", async () => {
  const begunIn = await run(40, 1, 4);
  expect(begunIn.reduce((sum, n) => sum + n, 0)).toBe(40);
  expect(Math.max(...begunIn)).toBe(4);
});

it("a step that takes longer than the budget has an iteration of its own", async () => {
  expect(await run(5, 100, 4)).toEqual([1, 1, 1, 1, 1]);
});

it("steps of several tasks begin in the order in which they were asked for, and share the budget", async () => {
  let now = 0;
  const share = new LoopShare(1, () => now);
  const order: string[] = [];
  const task = async (name: string) => {
    for (let i = 0; i < 3; i++) {
      await share.step();
      now += 1;
      order.push(name);
    }
  };
  await Promise.all([task("a"), task("b")]);
  expect(order).toEqual(["a", "b", "a", "b", "a", "b"]);
});

it("a holder with many steps delays another one by one of them", async () => {
  const share = new LoopShare(1, () => 0);
  const order: string[] = [];
  const steps = ["a", "a", "a", "a", "b", "b", "c"].map(async (holder) => {
    await share.step(holder);
    order.push(holder);
  });
  await Promise.all(steps);
  expect(order).toEqual(["a", "b", "c", "a", "b", "a", "a"]);
});
