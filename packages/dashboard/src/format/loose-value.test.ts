import fc from "fast-check";
import { expect, it } from "vitest";
import { formatLooseValue, formatPairs, parseLooseValue, parsePairs } from "./loose-value.ts";

it("reads numbers, booleans and null as what they look like, and everything else as text", () => {
  const given = ["5", "-0.5", "true", "null", '"5"', "pro", "", "{}", "[1]", "a=b"];
  expect(given.map(parseLooseValue)).toEqual([5, -0.5, true, null, "5", "pro", "", "{}", "[1]", "a=b"]);
});

it("reads back every value that it wrote", () => {
  const value = fc.oneof(
    fc.string(),
    fc.string({ unit: "binary" }),
    fc.integer(),
    fc.boolean(),
    fc.constant(null),
  );
  fc.assert(
    fc.property(value, (one) => {
      expect(parseLooseValue(formatLooseValue(one))).toBe(one);
    }),
  );
  const name = fc.string({ unit: fc.constantFrom("a", "b", "_", ".", "-"), minLength: 1 });
  fc.assert(
    fc.property(fc.dictionary(name, value, { noNullPrototype: true }), (pairs) => {
      expect(parsePairs(formatPairs(pairs))).toEqual(pairs);
    }),
  );
});
