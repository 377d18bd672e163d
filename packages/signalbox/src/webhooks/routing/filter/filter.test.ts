import fc from "fast-check";
import * as library from "simple-json-match";
import { describe, expect, it } from "vitest";
import { explainFilter, matchFilter } from "./match-filter.ts";
import { FilterError, parseFilter } from "./parse-filter.ts";

/** Its types describe a module of another kind than it is at run time. */
const matchOfTheLibrary = ((library.default as unknown as { default?: unknown }).default ??
  library.default) as (value: unknown, filter: unknown) => boolean;

const matches = (value: unknown, filter: unknown) => matchFilter(parseFilter(filter), value);

const ORDER = {
  type: "order.paid",
  total: 120,
  test: false,
  note: null,
  customer: { id: "c1", country: "CH", tags: ["new", "vip"] },
  items: [
    { sku: "a", count: 1, stock: 3, parts: [{ of: 1, is: 1 }] },
    { sku: "b", count: 5, stock: 5, parts: [{ of: 2, is: 3 }] },
  ],
  previous: { total: 100, country: "CH" },
  "dotted.name": 1,
};

/** Every operator, with and against the value. */
const CASES: readonly (readonly [filter: unknown, matches: boolean])[] = [
  [{ type: "order.paid" }, true],
  [{ type: "order.sent" }, false],
  [{ missing: "x" }, false],
  [{ missing: null }, false],
  [{ note: null }, true],
  [{ test: false }, true],
  [{ total: { $eq: 120 } }, true],
  [{ total: { $neq: 120 } }, false],
  [{ missing: { $neq: 120 } }, false],
  [{ total: { $gt: 119, $lt: 121 } }, true],
  [{ total: { $gt: 120 } }, false],
  [{ total: { $gte: 120, $lte: 120 } }, true],
  [{ total: { $gte: 121 } }, false],
  [{ total: { $lt: 120 } }, false],
  [{ total: { $lte: 119 } }, false],
  [{ type: { $gt: "order" } }, true],
  [{ note: { $gt: 0 } }, false],
  [{ type: { $in: ["order.paid", "order.sent"] } }, true],
  [{ type: { $in: "paid" } }, true],
  [{ type: { $in: ["paid"] } }, false],
  [{ type: { $nin: ["order.sent"] } }, true],
  [{ type: { $nin: "paid" } }, false],
  [{ type: { $startsWith: "order." } }, true],
  [{ type: { $startsWith: ["invoice.", "order."] } }, true],
  [{ type: { $startsWith: "paid" } }, false],
  [{ type: { $endsWith: ".paid" } }, true],
  [{ type: { $endsWith: [".sent"] } }, false],
  [{ total: { $startsWith: "1" } }, false],
  [{ customer: { $exist: true } }, true],
  [{ customer: { $exist: false } }, false],
  [{ missing: { $exist: false } }, true],
  [{ missing: { $exist: true } }, false],
  [{ customer: { vat: { $exist: false } } }, true],
  [{ $or: [{ type: "x" }, { total: 120 }] }, true],
  [{ $or: [{ type: "x" }, { total: 1 }] }, false],
  [{ type: { $or: ["x", "order.paid"] } }, true],
  [{ $and: [{ type: "order.paid" }, { total: 120 }] }, true],
  [{ $and: [{ type: "order.paid" }, { total: 1 }] }, false],
  [{ $not: { type: "x" } }, true],
  [{ $not: { type: "order.paid" }, total: 120 }, false],
  [{ $not: { type: "x" }, total: 1 }, false],
  [{ customer: { country: { $ref: "previous.country" } } }, true],
  [{ total: { $gt: { $ref: "previous.total" } } }, true],
  [{ total: { $lt: { $ref: "previous.total" } } }, false],
  [{ items: { count: { $eq: { $ref: "items[$index].stock" } } } }, true],
  [{ items: { count: { $gt: { $ref: "items[$index].stock" } } } }, false],
  [{ items: { parts: { of: { $ref: "items[$index].parts[$index].is" } } } }, true],
  [{ customer: { tags: "vip" } }, true],
  [{ customer: { tags: ["vip", "new"] } }, true],
  [{ customer: { tags: ["vip", "old"] } }, false],
  [{ customer: { tags: { $eq: ["new", "vip"] } } }, true],
  [{ items: { sku: "b", count: 5 } }, true],
  // One item has to meet both.
  [{ items: { sku: "a", count: 5 } }, false],
  [{}, true],
];

describe("every operator", () => {
  it.each(CASES)("%j on an order: %s", (filter, isMatch) => {
    expect(matches(ORDER, filter)).toBe(isMatch ? "match" : "mismatch");
    expect(matches(ORDER, { $not: filter })).toBe(isMatch ? "mismatch" : "match");
  });

  it.each(CASES)("decides %j as the public matching library does", (filter, isMatch) => {
    expect(matchOfTheLibrary(ORDER, filter)).toBe(isMatch);
  });
});

describe("where the public library has no answer, or one that surprises", () => {
  it.each([
    ["a dotted path", ORDER, { "customer.country": "CH" }, true],
    ["a dotted path through a list", ORDER, { "items.sku": "b" }, true],
    ["a field whose name has a dot", ORDER, { "dotted.name": 1 }, true],
    ["a list that has the value", ORDER, { customer: { tags: { $in: "vip" } } }, true],
    ["a list that has one of the values", ORDER, { customer: { tags: { $in: ["x", "new"] } } }, true],
    ["a list that does not have the value", ORDER, { customer: { tags: { $nin: "old" } } }, true],
    ["not, of a field", ORDER, { type: { $not: "order.sent" } }, true],
    ["not, of a list", ORDER, { customer: { tags: { $not: "vip" } } }, false],
    ["an alternative to absence", ORDER, { missing: { $or: [{ $exist: false }, "x"] } }, true],
    [
      "a header, which is text, and a number",
      { "content-length": "120" },
      { "content-length": { $gte: 100 } },
      true,
    ],
    ["objects whose fields have another order", { a: { x: 1, y: 2 } }, { a: { $eq: { y: 2, x: 1 } } }, true],
    ["inherited properties", {}, { constructor: { $exist: true } }, false],
    ["$index outside of a list", { a: 1 }, { a: { $ref: "b[$index]" } }, false],
    // A payload must not decide what a filter asks for.
    ["operators in the payload", { a: 5, b: { $gt: 1 } }, { a: { $ref: "b" } }, false],
    ["an empty filter and a value", 1, {}, false],
  ])("%s", (_what, value, filter, isMatch) => {
    expect(matches(value, filter)).toBe(isMatch ? "match" : "mismatch");
  });
});

describe("filters that no person writes", () => {
  const deep = (levels: number): unknown => (levels === 0 ? 1 : { $and: [deep(levels - 1)] });

  it.each([
    ["is too deep", deep(10)],
    ["is too deep for the stack", JSON.parse("[".repeat(100_000) + "]".repeat(100_000))],
    ["has too many parts", Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`f${i}`, 1]))],
    ["is too large", { a: "x".repeat(20_000) }],
    ["has an unknown operator", { a: { $regex: "(a+)+$" } }],
    ["has an empty alternative", { $or: [] }],
    ["has an alternative that is no list", { $or: { a: 1 } }],
    ["asks whether something exists with a text", { a: { $exist: "yes" } }],
    ["compares with a list", { a: { $gt: [1] } }],
    ["begins with a number", { a: { $startsWith: 1 } }],
    ["refers to an object", { a: { $ref: { b: 1 } } }],
    ["refers to an expression", { a: { $ref: "b[?(@.x)]" } }],
    ["has more than a reference as an operand", { a: { $eq: { $ref: "b", c: 1 } } }],
  ])("a filter that %s is refused when it is saved", (_what, filter) => {
    expect(() => parseFilter(filter)).toThrow(FilterError);
  });

  it("a filter of many parts on a list of many items is undecided after a bounded number of comparisons", () => {
    const filter = [{ $or: Array.from({ length: 200 }, (_, i) => ({ a: i })) }];
    const items = Array.from({ length: 100_000 }, () => ({ a: -1 }));
    expect(matches(items, filter)).toBe("undecided");
  });

  it("lists in lists deeper than the stack are undecided", () => {
    const nested: unknown = JSON.parse("[".repeat(50_000) + "]".repeat(50_000));
    expect(matches({ a: nested }, { a: "x" })).toBe("undecided");
    expect(matches({ a: nested, b: nested }, { a: { $eq: { $ref: "b" } } })).not.toBe("mismatch");
  });
});

it("agrees with the public library on any object of texts and numbers, for comparisons, combinations and lists", () => {
  const name = fc.constantFrom("a", "b", "c");
  const value = fc.oneof(fc.constantFrom("x", "y", "xy", ""), fc.integer({ min: 1, max: 4 }));
  const payload = fc.dictionary(
    name,
    fc.oneof(value, fc.array(value, { maxLength: 3 }), fc.dictionary(name, value)),
  );
  const comparison = fc.oneof(
    value,
    fc.record({ $eq: value }),
    fc.record({ $in: fc.array(value, { maxLength: 3 }) }),
    fc.record({ $exist: fc.boolean() }),
    fc.record({ $startsWith: fc.constantFrom("x", "y") }),
  );
  const field = fc.dictionary(name, comparison, { minKeys: 1 });
  const filter = fc.oneof(
    field,
    fc.record({ $or: fc.array(field, { minLength: 1, maxLength: 3 }) }),
    fc.record({ $and: fc.array(field, { minLength: 1, maxLength: 3 }) }),
    fc.record({ $not: field }),
  );
  // Lists are compared with `$in` otherwise; see above.
  const hasLists = (one: unknown) => Object.values(one as object).some(Array.isArray);
  fc.assert(
    fc.property(payload, filter, (one, asked) => {
      if (hasLists(one) && JSON.stringify(asked).includes("$in")) return;
      expect(matches(one, asked)).toBe(matchOfTheLibrary(one, asked) ? "match" : "mismatch");
    }),
  );
});

describe("explanations", () => {
  it("names the conditions that hold", () => {
    const { verdict, findings } = explainFilter(
      parseFilter({ type: "order.paid", items: { sku: "b", count: { $gt: 2 } } }),
      ORDER,
    );
    expect(verdict).toBe("match");
    expect(findings).toEqual([
      { at: "type", condition: '= "order.paid"', found: "order.paid", holds: true },
      { at: "items[1].sku", condition: '= "b"', found: "b", holds: true },
      { at: "items[1].count", condition: "$gt 2", found: 5, holds: true },
    ]);
  });

  it("ends with the condition that does not", () => {
    const { verdict, findings } = explainFilter(
      parseFilter({ type: { $startsWith: "order." }, $or: [{ total: { $lt: 5 } }, { test: true }] }),
      ORDER,
    );
    expect(verdict).toBe("mismatch");
    expect(findings.at(-1)).toMatchObject({
      condition: "one of { total: { $lt 5 } } or { test: true }",
      holds: false,
    });
  });
});

it("names of headers ignore case", () => {
  const filter = parseFilter({ "X-GitHub-Event": "push" }, true);
  expect(matchFilter(filter, { "x-github-event": "push" })).toBe("match");
});
