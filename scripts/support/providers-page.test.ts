import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { providersPage, PROVIDERS_PAGE_PATH } from "./providers-page.ts";

it("the page of providers is up to date; run npm run docs", () => {
  expect(readFileSync(PROVIDERS_PAGE_PATH, "utf8")).toBe(providersPage());
});
