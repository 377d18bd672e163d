import { expect, it } from "vitest";
import { isInlineImage, safeLink } from "./safe-address.ts";

it.each([
  "javascript:alert(1)",
  "JaVaScRiPt:alert(1)",
  " javascript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "/dashboard",
  "blob:x",
  "",
])("does not link to %j", (address) => expect(safeLink(address)).toBeNull());

it("links to pages and mail addresses", () => {
  expect(safeLink("https://example.com/a?b=c")).toBe("https://example.com/a?b=c");
  expect(safeLink("mailto:ada@example.com")).toBe("mailto:ada@example.com");
});

it("shows bitmaps that the text contains, and no other address", () => {
  expect(isInlineImage("data:image/png;base64,iVBORw0KGgo=")).toBe(true);
  for (const address of [
    "https://example.com/a.png",
    "data:image/svg+xml;base64,PHN2Zz4=",
    "data:text/html;base64,PGI+",
  ])
    expect(isInlineImage(address)).toBe(false);
});
