import { expect, it } from "vitest";
import { findFolderCircles } from "./folder-circles.ts";

const circles = (files: Readonly<Record<string, string>>) =>
  findFolderCircles("src", new Map(Object.entries(files).map(([path, text]) => [`src/${path}`, text])));

it.each([
  'import { b } from "../b/one.ts";',
  'import type { B } from "../b/one.ts";',
  'import {\n  type B,\n} from "../b/one.ts";',
  'export { b } from "../b/one.ts";',
  'import "../b/one.ts";',
  'const b = await import("../b/one.ts");',
  'type B = import("../b/one.ts").B;',
])("finds two folders that need each other through different files: %s", (text) => {
  expect(
    circles({ "a/one.ts": text, "a/two.ts": "", "b/one.ts": "", "b/two.ts": 'import "../a/two.ts";' }),
  ).toEqual([{ folder: "", entries: ["a", "b"], imports: ["a/one.ts → b/one.ts", "b/two.ts → a/two.ts"] }]);
});

it("finds a circle over several folders, and over a folder and a file", () => {
  expect(
    circles({
      "area/a/one.ts": 'import "../b/deep/one.ts";',
      "area/b/deep/one.ts": "",
      "area/b/two.ts": 'import "../names.ts";',
      "area/names.ts": 'import "./a/two.ts";',
      "area/a/two.ts": "",
    }).map(({ folder, entries }) => [folder, entries]),
  ).toEqual([["area", ["a", "b", "names.ts"]]]);
});

it("accepts a file that puts folders together, and folders in one direction", () => {
  expect(
    circles({
      "area/index.ts": 'import "./a/one.ts";\nimport "./b/one.ts";',
      "area/a/one.ts": 'import "../b/one.ts";\nimport "../names.ts";',
      "area/b/one.ts": 'import "../names.ts";\nimport "zod";',
      "area/names.ts": "",
    }),
  ).toEqual([]);
});
