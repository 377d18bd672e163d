import { expect, it } from "vitest";
import { boundedJson } from "./bounded-json.ts";

it("a value that fits is plain JSON", () => {
  const value = { a: [1, "b", null, true], c: { d: 2.5 }, at: new Date(0) };
  expect(JSON.parse(boundedJson(value, 1000))).toEqual({ ...value, at: "1970-01-01T00:00:00.000Z" });
  expect(boundedJson(undefined, 10)).toBe("null");
  expect(boundedJson(12n, 10)).toBe('"12"');
  expect(boundedJson({ __proto__: null, constructor: 1 }, 100)).toBe('{"constructor":1}');
});

it("a value that does not fit is cut, marked, and still JSON", () => {
  for (const value of ["x".repeat(10_000), Array.from({ length: 10_000 }, (_, i) => i), nested(100)]) {
    const json = boundedJson(value, 200);
    expect(json.length).toBeLessThan(400);
    expect(json).toContain("…");
    JSON.parse(json);
  }
});

it("binary data is a number of bytes, and a getter that throws does not fail the caller", () => {
  expect(boundedJson(new Uint8Array(5), 100)).toBe('"5 bytes"');
  const value = {
    get secret() {
      throw new Error("no");
    },
  };
  expect(boundedJson(value, 100)).toBe('"…"');
});

function nested(depth: number): unknown {
  return depth === 0 ? "end" : { below: nested(depth - 1) };
}
