import { expect, it } from "vitest";
import { jsonText, openDepth } from "./json-tree.ts";

it("opens three levels of a small value, and fewer of a large one", () => {
  expect(openDepth({ a: [{ b: 1 }], c: "text" })).toBe(3);
  const wide = (members: number, inner: unknown) => Array.from({ length: members }, () => inner);
  expect(openDepth(wide(10_000, wide(10, 1)))).toBe(1);
  expect(openDepth(wide(10, wide(10, wide(10, 1))))).toBe(2);
  expect(openDepth("text")).toBe(3);
});

it("has no text for a value with more levels than the stack has room for", () => {
  const deep: unknown = JSON.parse("[".repeat(100_000) + "]".repeat(100_000));
  expect(openDepth(deep)).toBe(3);
  expect(jsonText(deep)).toBeNull();
  expect(jsonText({ a: 1 })).toBe('{"a":1}');
});
