import { describe, expect, it } from "vitest";
import { findChromium } from "./chromium-path.ts";
import { launchBrowser, openPage } from "./launch-browser.ts";

describe("the browser of the tests", () => {
  it("is the one CHROMIUM_PATH names, and none when that file is missing", () => {
    expect(findChromium({ CHROMIUM_PATH: process.execPath })).toBe(process.execPath);
    expect(findChromium({ CHROMIUM_PATH: "/nowhere/chromium" })).toBeNull();
  });

  it("starts, shows a page and remembers what went wrong in it", async () => {
    const browser = await launchBrowser();
    const { page, problems } = await openPage(browser);
    await page.setContent("<h1>hello</h1><script>console.error('oh no'); throw new Error('broken')</script>");
    expect(await page.textContent("h1")).toBe("hello");
    expect(new Set(problems.map((problem) => problem.split(" (")[0]))).toEqual(
      new Set(["console: oh no", "uncaught: broken"]),
    );
    await browser.close();
  });
});
