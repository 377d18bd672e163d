import { expect, it } from "vitest";
import { argumentsOf, typedOf } from "./arguments.ts";

const of = (...names: string[]) =>
  names.map((text) => ({
    name: text.replace(/[?.]/g, ""),
    optional: text.endsWith("?") || text.startsWith("..."),
    rest: text.startsWith("..."),
  }));

it("a field is JSON or plain text, and empty fields at the end are left out", () => {
  expect(argumentsOf(of("a", "b", "c?"), ["5", "hello world", ""])).toEqual([5, "hello world"]);
  expect(argumentsOf(of("a", "b?"), ['{"x":[1]}', "true"])).toEqual([{ x: [1] }, true]);
  expect(argumentsOf(of("a"), ['""'])).toEqual([""]);
  expect(argumentsOf(of("a?", "b"), ["", "1"])).toEqual([null, 1]);
  expect(argumentsOf(of(), [])).toEqual([]);
  expect(argumentsOf(of("a", "...more"), ["1", "[2,3]"])).toEqual([1, 2, 3]);
});

it("a missing argument and broken JSON are errors", () => {
  expect(() => argumentsOf(of("a", "b"), ["", "1"])).toThrow("The argument a is missing");
  expect(() => argumentsOf(of("a"), ['{"x"'])).toThrow("neither JSON nor plain text");
});

it("what was sent can be typed again", () => {
  const parameters = of("a", "b", "...c");
  for (const args of [
    [1, "two"],
    ["5", " blank"],
    [null, { x: "y" }, 3, 4],
    ["", "[1]"],
  ])
    expect(argumentsOf(parameters, typedOf(parameters, args))).toEqual(args);
});
