import { expect, it } from "vitest";
import { parameterNames } from "./parameter-names.ts";

const source = {
  plain(_a: number, _b: string) {},
  async waiting(_only: string) {},
  none() {},
  defaults(_a = 1, _text = "a, b) {", { x: _x } = { x: [1, 2] }, ..._rest: number[]) {},
  commented(_a: number /* the first, really */, /* ( */ _b: string) {},
};

const namesOf = (name: keyof typeof source) =>
  parameterNames(source[name])?.map(
    ({ name: one, isOptional, isRest }) => `${isRest ? "..." : ""}${one}${isOptional ? "?" : ""}`,
  );

it("reads the names of plain, asynchronous and empty lists", () => {
  expect(namesOf("plain")).toEqual(["_a", "_b"]);
  expect(namesOf("waiting")).toEqual(["_only"]);
  expect(namesOf("none")).toEqual([]);
});

it("defaults, patterns, texts and comments do not end the list", () => {
  expect(namesOf("defaults")).toEqual(["_a?", "_text?", "…?", "..._rest?"]);
  expect(namesOf("commented")).toEqual(["_a", "_b"]);
});

it("a function without a readable source has none", () => {
  expect(parameterNames(source.plain.bind(null))).toBeNull();
  expect(parameterNames(Math.max)).toBeNull();
});
