import * as fc from "fast-check";
import { expect, it } from "vitest";
import { parseSelection } from "./parse-selection.ts";

const parse = (query: string) => parseSelection(new URLSearchParams(query), ["page"]);

it("reads a list of filters in every form", () => {
  const filters = [
    { field: "provider", operator: "eq", values: ["a", "b"] },
    { field: "cost", operator: "gt", values: [1] },
  ];
  for (const query of [
    "filters.key=provider&filters.operator=eq&filters.value=a&filters.value=b&filters.key=cost&filters.operator=gt&filters.value=1",
    "filters[0][key]=provider&filters[0][operator]=eq&filters[0][value][]=a&filters[0][value][]=b&filters[1][key]=cost&filters[1][operator]=gt&filters[1][value]=1",
    `filters=${encodeURIComponent('[{"key":"provider","operator":"eq","value":["a","b"]},{"key":"cost","operator":"gt","value":1}]')}`,
  ]) {
    expect(parse(query)).toEqual({ filters, search: "" });
  }
});

it("reads single parameters, and 0 as negative feedback", () => {
  expect(parse("page=2&min_duration=5&feedback=0&search=x")).toEqual({
    filters: [
      { field: "durationMs", operator: "gte", values: [5] },
      { field: "feedback", operator: "eq", values: [-1] },
    ],
    search: "x",
  });
});

it("refuses an unknown parameter, key or operator", () => {
  for (const query of [
    "provder=a",
    "constructor=1",
    "filters.key=x&filters.operator=eq&filters.value=1",
    "filters.key=toString&filters.operator=eq&filters.value=1",
    "filters.key=cost&filters.operator=like&filters.value=1",
    "filters.key=cost&filters.operator=eq",
    "filters={}",
    "min_cost=much",
  ]) {
    expect(() => parse(query), query).toThrow(expect.objectContaining({ id: "invalid_request" }));
  }
});

it("never fails in another way, whatever the query", () => {
  const name = fc.constantFrom(
    "filters",
    "filters.key",
    "filters[][value]",
    "filters.operator",
    "search",
    "cost",
  );
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.oneof(name, fc.string()), fc.oneof(fc.json(), fc.string()))),
      (pairs) => {
        try {
          parseSelection(new URLSearchParams(pairs), []);
        } catch (error) {
          expect(error).toMatchObject({ id: "invalid_request" });
        }
      },
    ),
  );
});
