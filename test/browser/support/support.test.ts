import { describe, expect, it, onTestFinished } from "vitest";
import { findChromium } from "./chromium-path.ts";
import { launchBrowser, openPage } from "./launch-browser.ts";

describe("the test browser", () => {
  it("is the executable in CHROMIUM_PATH, or null if the file does not exist", () => {
    expect(findChromium({ CHROMIUM_PATH: process.execPath })).toBe(process.execPath);
    expect(findChromium({ CHROMIUM_PATH: "/nowhere/chromium" })).toBeNull();
  });

  it("opens a page and records its errors", async () => {
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const { page, problems } = await openPage(browser);
    await page.setContent("<h1>hello</h1><script>console.error('oh no'); throw new Error('broken')</script>");
    expect(await page.textContent("h1")).toBe("hello");
    await expect
      .poll(() => new Set(problems.map((problem) => problem.split(" (")[0])))
      .toEqual(new Set(["console: oh no", "uncaught: broken"]));
  });
});
