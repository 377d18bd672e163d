import { expect, it } from "vitest";
import { readAhead } from "./read-ahead.ts";

/** Reads that the test ends. */
function heldReads() {
  const reads: PromiseWithResolvers<string>[] = [];
  const read = () => {
    const held = Promise.withResolvers<string>();
    reads.push(held);
    return held.promise;
  };
  return { reads, read };
}

it("yields results in the order of the items, with so many reads at a time", async () => {
  const { reads, read } = heldReads();
  const results = readAhead([1, 2, 3, 4], 3, read);
  const first = results.next();
  expect(reads).toHaveLength(3);
  for (const [i, held] of [...reads.entries()].toReversed()) held.resolve(`r${i}`);
  expect(await first).toEqual({ done: false, value: "r0" });
  expect(await Promise.all([results.next(), results.next()])).toMatchObject([
    { value: "r1" },
    { value: "r2" },
  ]);
  expect(reads).toHaveLength(4);
  reads[3]?.resolve("r3");
  expect(await results.next()).toEqual({ done: false, value: "r3" });
  expect(await results.next()).toEqual({ done: true, value: undefined });
});

it("yields the results of fewer items than it could read", async () => {
  const all: number[] = [];
  for await (const one of readAhead([1, 2], 5, async (item) => item * 2)) all.push(one);
  expect(all).toEqual([2, 4]);
});

it("a read that fails ends it in its turn, when the others have ended", async () => {
  const { reads, read } = heldReads();
  const results = readAhead([1, 2, 3], 3, read);
  const first = results.next();
  reads[1]?.reject(new Error("second"));
  reads[0]?.resolve("r0");
  expect(await first).toMatchObject({ value: "r0" });
  let hasEnded = false;
  const second = results.next().finally(() => (hasEnded = true));
  second.catch(() => undefined);
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasEnded).toBe(false);
  reads[2]?.resolve("r2");
  await expect(second).rejects.toThrow("second");
});

it("when the reader leaves, no read runs any more, and a failure of one is nobody's", async () => {
  const { reads, read } = heldReads();
  const results = readAhead([1, 2, 3], 2, read);
  const first = results.next();
  reads[0]?.resolve("r0");
  await first;
  let hasEnded = false;
  const left = results.return(undefined).then(() => (hasEnded = true));
  await new Promise((resolve) => setImmediate(resolve));
  expect(hasEnded).toBe(false);
  reads[1]?.reject(new Error("too late"));
  await left;
  expect(reads).toHaveLength(2);
});
