import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { promisesPage, PROMISES_PAGE_PATH } from "./promises-page.ts";

it("docs/promises.md is up to date with the lists of promises (otherwise: npm run docs)", () => {
  expect(readFileSync(PROMISES_PAGE_PATH, "utf8")).toBe(promisesPage());
});
