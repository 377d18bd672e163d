import { expect, test } from "vitest";
import { IgnoredFiles } from "./ignored-files.ts";

test.each([
  ["name", ["name", "a/name", "name/x", "NAME"], ["names", "a/other"]],
  ["/name", ["name", "name/x"], ["a/name"]],
  ["name/", ["name/x", "a/name/x"], ["name", "a/name"]],
  ["a/name", ["a/name", "a/name/x"], ["b/a/name"]],
  ["*.js", [".js", "x.js", "a/x.js"], ["x.jsx", "js"]],
  ["/*.js", ["x.js"], ["a/x.js"]],
  ["a/*", ["a/x", "a/x/y"], ["a", "b/a/x"]],
  ["a**z", ["az", "abcz"], ["a/z"]],
  ["**/x", ["x", "a/x", "a/b/x"], ["xx"]],
  ["a/**", ["a/x", "a/b/x"], ["a"]],
  ["a/**/z", ["a/z", "a/b/z", "a/b/c/z"], ["az"]],
  ["**", ["x", "a/x"], []],
  ["?.txt", ["a.txt"], ["ab.txt", ".txt"]],
  ["[ab].txt", ["a.txt", "b.txt"], ["c.txt"]],
  ["[!ab].txt", ["c.txt"], ["a.txt"]],
  ["[]x].txt", ["].txt", "x.txt"], ["y.txt"]],
  ["[z-a].txt", ["[z-a].txt"], ["b.txt"]],
  ["a[/]b", [], ["a/b"]],
  ["[", ["["], ["x"]],
  ["a.b", ["a.b"], ["axb"]],
  ["\\#x", ["#x"], ["x"]],
  ["\\!x", ["!x"], ["x"]],
  ["# x", [], ["x", "# x"]],
  ["x   ", ["x"], ["x   "]],
  ["x\\ ", ["x "], ["x"]],
  ["\uFEFFx\r\ny", ["x", "y"], ["z"]],
  ["*\n!keep", ["x"], ["keep"]],
  ["!keep\n*", ["keep"], []],
  ["folder\n!folder/keep", ["folder/keep"], []],
  ["folder/*\n!folder/keep", ["folder/x"], ["folder/keep"]],
  ["", [], ["x"]],
])("%j ignores %j and not %j", (text, ignored, others) => {
  const files = new IgnoredFiles(text);
  const has = (path: string) => files.has(path.split("/"));
  expect(ignored.filter((path) => !has(path))).toEqual([]);
  expect(others.filter(has)).toEqual([]);
});
