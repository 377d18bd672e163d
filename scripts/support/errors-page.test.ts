import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { errorsPage, ERRORS_PAGE_PATH } from "./errors-page.ts";

it("docs/reference/errors.md is up to date with the error table (otherwise: npm run docs)", () => {
  expect(readFileSync(ERRORS_PAGE_PATH, "utf8")).toBe(errorsPage());
});
