import { setImmediate as nextLoop } from "node:timers/promises";
import { expect, it } from "vitest";
import { LongWork } from "./long-work.ts";

/** Takes the event loop. */
function compute(ms: number): void {
  const endsAt = performance.now() + ms;
  while (performance.now() < endsAt);
}

it("pieces of several holders take turns, and others have the event loop between them", async () => {
  const work = new LongWork();
  const order: string[] = [];
  const done = ["a1", "a2", "a3", "b1"].map(
    (name) =>
      new Promise<void>((resolve) => {
        work.begin(name.charAt(0), () => {
          order.push(name);
          resolve();
          // As a call does, in the microtasks behind its body.
          queueMicrotask(() => compute(20));
        });
      }),
  );
  expect(order).toEqual(["a1"]);
  let isOver = false;
  void Promise.all(done).then(() => (isOver = true));
  while (!isOver) {
    await nextLoop();
    order.push("other");
  }
  const pieces = order.filter((name) => name !== "other");
  expect(pieces).toEqual(["a1", "a2", "b1", "a3"]);
  // Many iterations of the loop, and not only one, before each further piece.
  const others = order
    .join(" ")
    .split(/ ?[ab]\d ?/)
    .map((text) => text.split(" ").length);
  expect(others.slice(1, -1).every((count) => count > 3)).toBe(true);
});
