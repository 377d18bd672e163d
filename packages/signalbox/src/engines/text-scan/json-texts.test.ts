import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readJsonSlices, readJsonTexts } from "./json-texts.ts";

/** The texts of a document that is read in slices, and how many there were. */
function inSlices(json: string) {
  const slices = readJsonSlices(json);
  for (let count = 1; ; count++) {
    const { done, value } = slices.next();
    if (done === true) return { texts: value, count };
  }
}

describe("a document that is read in slices", () => {
  it("has the texts of one that is read in one piece, and is valid if that one is", () => {
    const damage = fc.record({
      at: fc.nat(200),
      text: fc.constantFrom("", '"', "\\", "{", "]", ",", "\n", "0", "\\u12"),
    });
    fc.assert(
      fc.property(fc.json({ maxDepth: 4 }), fc.option(damage), (json, wrong) => {
        const document =
          wrong === null ? json : json.slice(0, wrong.at) + wrong.text + json.slice(wrong.at + 1);
        expect(inSlices(document).texts).toEqual(readJsonTexts(document));
      }),
      { numRuns: 2000, seed: 38 },
    );
  });

  it.each([
    ["prose", "The line is clear. "],
    ["escapes of all lengths", '\\ "\n\u0001\u2028 é \u{1f600} \ud83d'],
    ["backslashes only", "\\"],
    ["escaped letters", "\u0001"],
  ])("has long strings of %s whole, wherever they are cut", (_, unit) => {
    for (const before of ["", "a", "ab", "abc", "abcd", "abcde"]) {
      const text = before + unit.repeat(200_000 / unit.length);
      const { texts, count } = inSlices(JSON.stringify({ content: text, next: "x" }));
      expect(count).toBeGreaterThan(3);
      expect(texts?.map((one) => one.text === text || one.text)).toEqual(["content", true, "next", "x"]);
    }
  });

  it("is none if a long string is none", () => {
    const long = "x".repeat(200_000);
    for (const wrong of [`"${long}\n"`, `"${long}\\u12"`, `"${long}\\`, `"${long}`, `"${long}" "a"`])
      expect([inSlices(wrong).texts, readJsonTexts(wrong)]).toEqual([null, null]);
  });
});
