import { expect, it } from "vitest";
import { WriteTogether } from "./write-together.ts";

/** Writes that end when the test says so. */
function collect() {
  const writes: { items: readonly string[]; done: PromiseWithResolvers<string> }[] = [];
  const together = new WriteTogether<string, string>((items) => {
    const done = Promise.withResolvers<string>();
    writes.push({ items, done });
    return done.promise;
  });
  return { together, writes };
}

const nextIteration = () => new Promise((resolve) => setImmediate(resolve));

it("items of one iteration of the event loop are written together, in their order, and share the result", async () => {
  const { together, writes } = collect();
  const added = [together.add("a"), Promise.resolve().then(() => together.add("b"))];
  await nextIteration();
  expect(writes.map(({ items }) => items)).toEqual([["a", "b"]]);
  writes[0]?.done.resolve("stored");
  expect(await Promise.all(added)).toEqual(["stored", "stored"]);
});

it("items that are added while a write runs are written by the next one", async () => {
  const { together, writes } = collect();
  const first = together.add("a");
  await nextIteration();
  const second = together.add("b");
  await nextIteration();
  expect(writes.map(({ items }) => items)).toEqual([["a"], ["b"]]);
  writes[1]?.done.resolve("2");
  writes[0]?.done.resolve("1");
  expect(await Promise.all([first, second])).toEqual(["1", "2"]);
});

it("a write that fails, at once or later, fails its items and no others", async () => {
  const { together, writes } = collect();
  const failing = [together.add("a"), together.add("b")].map((one) =>
    one.catch((error: Error) => error.message),
  );
  await nextIteration();
  const next = together.add("c");
  writes[0]?.done.reject(new Error("full"));
  expect(await Promise.all(failing)).toEqual(["full", "full"]);
  await nextIteration();
  writes[1]?.done.resolve("stored");
  expect(await next).toBe("stored");

  const throwing = new WriteTogether(() => {
    throw new Error("closed");
  });
  await expect(throwing.add("a")).rejects.toThrow("closed");
});
