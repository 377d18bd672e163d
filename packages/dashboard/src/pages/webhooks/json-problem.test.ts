import { expect, it } from "vitest";
import { jsonProblem } from "./json-problem.ts";

it.each(["{}", "[1]", '{"a":\n{"b":null}}'])("takes the JSON object or array %s", (text) => {
  expect(jsonProblem(text)).toBeNull();
});

it("names the line and the column of an error", () => {
  expect(jsonProblem('{\n  "a": 1,\n  b: 2\n}')).toMatch(/^Not valid JSON in line 3, column 3: /);
});

it.each(["", "{", "1", "null", '"text"'])("refuses %s", (text) => {
  expect(jsonProblem(text)).not.toBeNull();
});
