import { setImmediate as nextLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { LongWork } from "./long-work.ts";

/** Work on a clock that only the pieces and the pauses move. A pause ends when the test says so. */
function openWork() {
  let now = 0;
  const pauses: { ms: number; end: () => void }[] = [];
  const work = new LongWork(
    () => now,
    (ms) =>
      new Promise<void>((resolve) => {
        pauses.push({ ms, end: resolve });
      }),
  );
  return { work, pauses, compute: (ms: number) => (now += ms) };
}

/** Long enough for whatever does not wait for a pause. */
async function someLoops(): Promise<void> {
  for (let i = 0; i < 20; i++) await nextLoop();
}

it("pieces of several holders take turns, and the event loop is free between them for as long as each took", async () => {
  const { work, pauses, compute } = openWork();
  const order: string[] = [];
  const lengths: Record<string, number> = { a1: 20, a2: 30, b1: 40, a3: 5000 };
  for (const name of ["a1", "a2", "a3", "b1"])
    work.begin(name.charAt(0), () => {
      order.push(name);
      // As a call does, in the microtasks behind its body.
      queueMicrotask(() => compute(lengths[name] ?? 0));
    });
  expect(order).toEqual(["a1"]);
  for (const [begun, pauseMs] of [
    [["a1"], 20],
    [["a1", "a2"], 30],
    [["a1", "a2", "b1"], 40],
    // The process was probably stopped.
    [["a1", "a2", "b1", "a3"], 500],
  ]) {
    await someLoops();
    expect([order, pauses.map(({ ms }) => ms)]).toEqual([begun, [pauseMs]]);
    pauses.pop()?.end();
  }
});

it("a short piece is followed by the next at once", async () => {
  const { work, pauses, compute } = openWork();
  const order: number[] = [];
  for (let i = 0; i < 3; i++)
    work.begin("a", () => {
      order.push(i);
      compute(1);
    });
  await someLoops();
  expect([order, pauses]).toEqual([[0, 1, 2], []]);
});
