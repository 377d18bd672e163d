/** Fails if a promise has no test, or if an entry names a promise, file or title that does not exist. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { parseEntry, PROMISING_PAGES, promisesOf, REPOSITORY } from "./promises.ts";

const read = (path: string) => readFileSync(join(REPOSITORY, path), "utf8");

describe.each(PROMISING_PAGES)("$path", ({ path, tests }) => {
  it("makes exactly the promises in the list, each once", () => {
    expect(promisesOf(read(path)).toSorted()).toEqual(Object.keys(tests).toSorted());
  });

  it("has an existing test for each promise", () => {
    for (const [promise, entries] of Object.entries(tests)) {
      expect(entries, promise).not.toEqual([]);
      expect(
        entries.filter((entry) => !isTest(entry)),
        promise,
      ).toEqual([]);
    }
  });
});

it("finds promises in bullets and table rows, and not in other bold text", () => {
  const text =
    "- **One.** Text with **bold** in it.\n| **Two** (really) | x |\n**Three** is none.\n- four **none**\n";
  expect(promisesOf(text)).toEqual(["One", "Two"]);
});

it("finds tests by file and title, except skipped ones", () => {
  const own = "test/promises/promises.test.ts";
  expect(isTest(`${own} › has an existing test for each promise`)).toBe(true);
  expect(isTest(`${own} › has an existing`)).toBe(false);
  expect(isTest("test/promises/none.test.ts › has an existing test for each promise")).toBe(false);
  expect(hasTest('it.skip("waits", () => {', "waits")).toBe(false);
  expect(hasTest('it.each([1])("waits", () => {', "waits")).toBe(true);
});

function isTest(entry: string): boolean {
  const { path, title } = parseEntry(entry);
  return path.endsWith(".test.ts") && existsSync(join(REPOSITORY, path)) && hasTest(read(path), title);
}

/** A title follows an opening parenthesis, as in `it("…",` or `it.each(…)("…",`, and is followed by a comma. */
function hasTest(source: string, title: string): boolean {
  const textsBefore = source.split(`${JSON.stringify(title)},`).slice(0, -1);
  return textsBefore.some((text) => {
    const before = text.trimEnd();
    return before.endsWith("(") && !/\.(?:skip|todo|fails)\b[^\n]*$/.test(before);
  });
}
