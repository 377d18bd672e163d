import { expect, it } from "vitest";
import { stateChanges } from "./state-changes.ts";

const changesOf = (before: unknown, after: unknown) =>
  stateChanges(
    before === undefined ? null : JSON.stringify(before),
    after === undefined ? null : JSON.stringify(after),
  );

it("lists the members that differ, and nothing that is equal", () => {
  expect(
    changesOf(
      { count: 1, list: [1, 2], user: { name: "a", age: 3 } },
      { count: 2, list: [1, 2, 3], user: { name: "a" } },
    ),
  ).toEqual({
    changes: [
      { path: ["count"], before: "1", after: "2" },
      { path: ["list", "2"], before: null, after: "3" },
      { path: ["user", "age"], before: "3", after: null },
    ],
    isCut: false,
  });
  expect(changesOf({ a: 1 }, { a: 1 })).toEqual({ changes: [], isCut: false });
});

it("the first state, and a state of another kind, are one change", () => {
  expect(changesOf(undefined, { a: 1 }).changes).toEqual([{ path: [], before: null, after: '{"a":1}' }]);
  expect(changesOf([1], { 0: 1 }).changes).toEqual([{ path: [], before: "[1]", after: '{"0":1}' }]);
});

it("members with names of the language are members", () => {
  const before = JSON.parse('{"__proto__":1,"constructor":2}') as unknown;
  expect(changesOf(before, { toString: 1 }).changes.map(({ path }) => path[0])).toEqual([
    "__proto__",
    "constructor",
    "toString",
  ]);
});

it("many changes and large states are cut", () => {
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`k${i}`, i]));
  const cut = changesOf({}, many);
  expect(cut.changes).toHaveLength(30);
  expect(cut.isCut).toBe(true);
  expect(changesOf("x".repeat(40_000), "y".repeat(40_000))).toEqual({ changes: [], isCut: true });
  expect(changesOf("x".repeat(4000), "y").changes[0]?.before?.length).toBeLessThan(450);
});

it("a deep state is compared only near its root", () => {
  const nested = (inner: string) => `${"[".repeat(10_000)}${inner}${"]".repeat(10_000)}`;
  expect(stateChanges(nested("1"), nested("2"))).toEqual({ changes: [], isCut: true });
});
