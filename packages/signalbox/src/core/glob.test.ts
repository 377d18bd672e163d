import fc from "fast-check";
import { expect, it } from "vitest";
import { coversGlob, matchesAll, matchesGlob, parseGlob } from "./glob.ts";

const matches = (pattern: string, text: string) => matchesGlob(parseGlob(pattern), text);

it.each([
  ["gpt-4o", "gpt-4o", true],
  ["GPT-4o", "gpt-4o", true],
  ["gpt-4o", "gpt-4o-mini", false],
  ["gpt-*", "gpt-", true],
  ["*-mini", "gpt-4o-mini", true],
  ["*-mini", "mini", false],
  ["a*a", "a", false],
  ["a*a", "aa", true],
  ["*a*b*", "xxbxxaxx", false],
  ["*a*b*", "xxaxxbxx", true],
  ["ab*ba", "aba", false],
  ["**", "", true],
  ["*", "anything/at all", true],
  ["a.c", "abc", false],
])("%s matches %s: %s", (pattern, text, expected) => {
  expect(matches(pattern, text)).toBe(expected);
});

const letters = fc.string({ unit: fc.constantFrom("a", "b", "/"), maxLength: 8 });
const pattern = fc.string({ unit: fc.constantFrom("a", "b", "/", "*"), maxLength: 8 });

it("matches what the regular expression of the pattern matches", () => {
  fc.assert(
    fc.property(pattern, letters, (glob, text) => {
      const expression = new RegExp(`^${glob.replaceAll(/\*+/g, ".*")}$`);
      expect(matches(glob, text)).toBe(expression.test(text));
    }),
    { numRuns: 2000 },
  );
});

it("covers a pattern only if it matches every text of that pattern", () => {
  fc.assert(
    fc.property(
      pattern,
      pattern,
      fc.array(letters, { minLength: 9, maxLength: 9 }),
      (outer, inner, fillings) => {
        if (!coversGlob(parseGlob(outer), parseGlob(inner))) return;
        let i = 0;
        const text = inner.replaceAll("*", () => fillings[i++ % fillings.length] ?? "");
        expect(matches(outer, text)).toBe(true);
      },
    ),
    { numRuns: 5000 },
  );
});

it("finds the end of a hostile pattern and text", () => {
  const text = "a".repeat(512);
  expect(matches(`${"*a".repeat(128)}*b`, text)).toBe(false);
  expect(matches(`${"*a".repeat(128)}*`, text)).toBe(true);
  expect(matchesAll(parseGlob("***"))).toBe(true);
  expect(matchesAll(parseGlob("*a*"))).toBe(false);
});
