import { expect, it } from "vitest";
import { changedMembers } from "./changed-members.ts";

it("shows only the members that differ, of a creation and a deletion all", () => {
  expect(changedMembers({ a: 1, b: [1], c: "x" }, { a: 1, b: [2], d: null })).toEqual([
    { name: "b", before: "[1]", after: "[2]" },
    { name: "c", before: '"x"', after: "–" },
    { name: "d", before: "–", after: "null" },
  ]);
  expect(changedMembers(null, { a: 1 })).toEqual([{ name: "a", before: "–", after: "1" }]);
  expect(changedMembers({ a: 1 }, null)).toEqual([{ name: "a", before: "1", after: "–" }]);
  expect(changedMembers(null, null)).toEqual([]);
});
