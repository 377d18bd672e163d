import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { fromStoredText, MAX_PREFIX_BYTES, prefixRange, toSortKey, toStoredText } from "./dictionary.ts";

// Short texts, and texts with a common beginning around the length from which sort keys are truncated.
const text = fc
  .oneof(
    fc.string({ unit: "grapheme", maxLength: 20 }),
    fc.tuple(
      fc.constantFrom("a", "é", "𝄞"),
      fc.integer({ min: 30, max: 220 }),
      fc.constantFrom("", "b", "ß"),
    ),
  )
  .map((parts) => (typeof parts === "string" ? parts : parts[0].repeat(parts[1]) + parts[2]));

describe("sort keys", () => {
  it("are equal only for equal texts, and the text can be read back", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Buffer.compare(toSortKey(a), toSortKey(b)) === 0).toBe(a === b);
        const { sortKey, fullText } = toStoredText(a);
        expect(fromStoredText({ sort_key: sortKey, full_text: fullText })).toBe(a);
        expect(sortKey.length).toBeLessThanOrEqual(201);
      }),
      { numRuns: 300 },
    );
  });

  it("sort by code point within the bytes that are stored of every text", () => {
    fc.assert(
      fc.property(text, text, (a, b) => {
        const [x, y] = [Buffer.from(a), Buffer.from(b)].map((bytes) => bytes.subarray(0, MAX_PREFIX_BYTES));
        const order = Buffer.compare(x ?? Buffer.of(), y ?? Buffer.of());
        if (order !== 0) expect(Buffer.compare(toSortKey(a), toSortKey(b))).toBe(order);
      }),
      { numRuns: 300 },
    );
  });

  it("are in the range of the longest prefix whatever the hash begins with", () => {
    const prefix = `${"a".repeat(MAX_PREFIX_BYTES - 1)}b`;
    const { low, high } = prefixRange(prefix);
    for (let i = 0; i < 2000; i++) {
      const key = toSortKey(`${prefix}, the text with the number ${i}`);
      expect([i, Buffer.compare(low, key) <= 0 && Buffer.compare(key, high) < 0]).toEqual([i, true]);
    }
  });

  it("are in the range of a prefix exactly if the text begins with the prefix", () => {
    const prefix = text.filter((text) => Buffer.byteLength(text) <= MAX_PREFIX_BYTES);
    fc.assert(
      fc.property(prefix, text, fc.boolean(), (prefix, rest, isJoined) => {
        const text = isJoined ? prefix + rest : rest;
        const { low, high } = prefixRange(prefix);
        const key = toSortKey(text);
        const isInRange = Buffer.compare(low, key) <= 0 && Buffer.compare(key, high) < 0;
        expect(isInRange).toBe(text.startsWith(prefix));
      }),
      { numRuns: 300 },
    );
  });
});
