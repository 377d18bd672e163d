import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { formatTagFilter, matchesTags, parseTagFilter, type TagFilter } from "./tag-filter.ts";

const key = fc.stringMatching(/^[\p{L}\p{Nd}_.-]{1,12}$/u);
const values = fc.array(fc.string({ unit: "grapheme", maxLength: 12 }), { minLength: 1, maxLength: 10 });
const filter: fc.Arbitrary<TagFilter> = fc.oneof(
  key.map((key): TagFilter => ({ kind: "has", key })),
  key.map((key): TagFilter => ({ kind: "lacks", key })),
  fc.tuple(key, values).map(([key, values]): TagFilter => ({ kind: "in", key, values })),
  fc.tuple(key, values).map(([key, values]): TagFilter => ({ kind: "not_in", key, values })),
);

function outcomeOf(text: string): unknown {
  try {
    parseTagFilter(text);
    return "parsed";
  } catch (error) {
    return (error as { code?: number }).code;
  }
}

describe("the filter language", () => {
  it("parses every filter that it formats", () => {
    fc.assert(
      fc.property(filter, (filter) => {
        expect(parseTagFilter(formatTagFilter(filter))).toEqual(filter);
      }),
    );
  });

  it("parses any text or throws one of its errors", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        expect(["parsed", 1007, 1011, 1012, 1013, 1014]).toContain(outcomeOf(text));
      }),
    );
  });

  it.each([
    ["a=b", { kind: "in", key: "a", values: ["b"] }],
    ["a=b!=c", { kind: "in", key: "a", values: ["b!=c"] }],
    ["a!=b=c", { kind: "not_in", key: "a", values: ["b=c"] }],
    ["a=", { kind: "in", key: "a", values: [""] }],
    ["a=,", { kind: "in", key: "a", values: ["", ""] }],
    ["a==b", { kind: "in", key: "a", values: ["=b"] }],
    [String.raw`a=\,\\\x,\\`, { kind: "in", key: "a", values: [String.raw`,\\x`, "\\"] }],
    ["!a", { kind: "lacks", key: "a" }],
  ])("parses %s", (text, expected) => {
    expect(parseTagFilter(text)).toEqual(expected);
  });

  it("evaluates a negative filter to the complement of the positive one", () => {
    const tags = fc
      .array(fc.tuple(fc.constantFrom("a", "A", "b"), fc.constantFrom("x", "X", "")))
      .map((entries) => new Map(entries));
    fc.assert(
      fc.property(
        tags,
        fc.constantFrom("a", "A", "b"),
        values,
        fc.boolean(),
        (tags, key, values, isCaseInsensitive) => {
          const holds = (filter: TagFilter) => matchesTags([filter], tags, isCaseInsensitive);
          expect(holds({ kind: "lacks", key })).toBe(!holds({ kind: "has", key }));
          expect(holds({ kind: "not_in", key, values })).toBe(!holds({ kind: "in", key, values }));
        },
      ),
    );
  });
});
