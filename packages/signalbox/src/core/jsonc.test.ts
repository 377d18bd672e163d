import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJsonc } from "./jsonc.ts";

test("comments and trailing commas are skipped, also inside each other", () => {
  const text = `{ // a comment, with "quotes"
    "a": [1, 2, /* three, */ ], /* { */
    "b": "// no comment, /* neither */ \\" ,]",
  }`;
  expect(parseJsonc(text)).toEqual({ a: [1, 2], b: '// no comment, /* neither */ " ,]' });
});

test("a byte order mark is skipped", () => {
  expect(parseJsonc("\uFEFF[1]")).toEqual([1]);
});

test("what JSON does not allow besides is refused", () => {
  for (const text of ["", "{", "[,]", "[1,,]", "{'a':1}", "{a:1}", "[1] /*", "[1] /", "[1 2]"]) {
    expect(() => parseJsonc(text), text).toThrow(SyntaxError);
  }
});

test("every JSON value survives, with comments and trailing commas added anywhere between tokens", () => {
  const space = fc.constantFrom(" ", "\n", "/* } */", "// ]\n", "/**/");
  fc.assert(
    fc.property(fc.jsonValue(), fc.array(space, { minLength: 1 }), (value, spaces) => {
      let next = 0;
      const filler = () => spaces[next++ % spaces.length] ?? " ";
      expect(parseJsonc(write(value, filler))).toEqual(JSON.parse(JSON.stringify(value)));
    }),
  );
});

/** Writes a value with filler between all tokens, and a comma after every last member. */
function write(value: unknown, filler: () => string): string {
  const list = (open: string, members: readonly string[], close: string) =>
    open + filler() + members.map((member) => `${member}${filler()},${filler()}`).join("") + close;
  if (Array.isArray(value))
    return list(
      "[",
      value.map((item) => write(item, filler)),
      "]",
    );
  if (typeof value === "object" && value !== null) {
    const members = Object.entries(value).map(
      ([key, item]) => `${JSON.stringify(key)}${filler()}:${filler()}${write(item, filler)}`,
    );
    return list("{", members, "}");
  }
  return JSON.stringify(value);
}
