/** A promise without a test fails here, and so does a test's entry whose promise, file or title is gone. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseEntry, PROMISING_PAGES, promisesOf, REPOSITORY } from "./promises.ts";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

describe.each(PROMISING_PAGES)("$path", ({ path, tests }) => {
  it("makes the promises that the list has, each once", () => {
    expect(promisesOf(read(path)).toSorted()).toEqual(Object.keys(tests).toSorted());
  });

  it("has tests for each promise, which exist", () => {
    for (const [promise, entries] of Object.entries(tests)) {
      expect(entries, promise).not.toEqual([]);
      expect(
        entries.filter((entry) => !isTest(entry)),
        promise,
      ).toEqual([]);
    }
  });
});

it("finds promises in bullets and rows, and not in other bold text", () => {
  const text =
    "- **One.** Text with **bold** in it.\n| **Two** (really) | x |\n**Three** is none.\n- four **none**\n";
  expect(promisesOf(text)).toEqual(["One", "Two"]);
});

it("knows tests by file and title, and takes no skipped one for a test", () => {
  const own = "test/promises/promises.test.ts";
  expect(isTest(`${own} › has tests for each promise, which exist`)).toBe(true);
  expect(isTest(`${own} › has tests`)).toBe(false);
  expect(isTest("test/promises/none.test.ts › has tests for each promise, which exist")).toBe(false);
  expect(hasTest('it.skip("waits", () => {', "waits")).toBe(false);
  expect(hasTest('it.each([1])("waits", () => {', "waits")).toBe(true);
});

function isTest(entry: string): boolean {
  const { path, title } = parseEntry(entry);
  return path.endsWith(".test.ts") && existsSync(join(REPOSITORY, path)) && hasTest(read(path), title);
}

/** A title stands behind an opening bracket, `it("…",` or `it.each(…)("…",`, and is followed by a comma. */
function hasTest(source: string, title: string): boolean {
  const textsBefore = source.split(`${JSON.stringify(title)},`).slice(0, -1);
  return textsBefore.some((text) => {
    const before = text.trimEnd();
    return before.endsWith("(") && !/\.(?:skip|todo|fails)\b[^\n]*$/.test(before);
  });
}
