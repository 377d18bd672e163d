/** The site of the documentation, built and opened in a browser without a network. */
import { execFile } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join, normalize } from "node:path";
import { promisify } from "node:util";
import { describe, expect, it, onTestFinished } from "vitest";
import { GROUPS } from "../../docs/.vitepress/sidebar.ts";
import { launchBrowser, openPage } from "../browser/support/launch-browser.ts";
import { seriousViolations } from "../browser/support/serious-violations.ts";
import { ROOT } from "./support/code-blocks.ts";

const run = promisify(execFile);

describe("The documentation site", () => {
  it("has every page in its sidebar", () => {
    const inSidebar = new Set(GROUPS.flatMap(({ pages }) => pages));
    const pages = globSync("**/*.md", { cwd: join(ROOT, "docs") })
      .map((page) => page.replace(/\.md$/, ""))
      .filter((page) => !/^(decisions\/0|index$|README$)/.test(page));
    expect(pages.filter((page) => !inSidebar.has(page))).toEqual([]);
  });

  it("builds without dead links, and its search works offline", async () => {
    const folder = mkdtempSync(join(tmpdir(), "signalbox-site-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    // Smaller files prove nothing more, and are a quarter of the work.
    await run("vitepress", ["build", "docs", "--outDir", folder, "--no-minify"], { cwd: ROOT });

    const url = await serveFolder(folder);
    const browser = await launchBrowser();
    onTestFinished(() => browser.close());
    const { page, problems } = await openPage(browser);
    // Nothing but the site itself can be reached.
    const foreign: string[] = [];
    await page.route(
      (address) => address.origin !== url,
      (route) => {
        foreign.push(route.request().url());
        return route.abort();
      },
    );
    await page.goto(`${url}/start.html`);
    // The theme's search button shows its keys, which its name does not have.
    const rules = { "label-content-name-mismatch": { enabled: false } };
    expect(await seriousViolations(page, { rules })).toEqual([]);
    const field = page.getByRole("searchbox");
    // A click before the scripts of the page have started has no effect.
    await expect
      .poll(async () => {
        const button = page.getByRole("button", { name: "Search" });
        await button.click({ timeout: 5000 }).catch(() => undefined);
        return field.waitFor({ timeout: 5000 }).then(
          () => true,
          () => false,
        );
      })
      .toBe(true);
    await field.fill("prepaid credit");
    await page
      .getByRole("option", { name: /Prepaid credit/ })
      .first()
      .click();
    await expect.poll(() => page.url()).toContain("limits-and-budgets");
    expect(foreign).toEqual([]);
    expect(problems).toEqual([]);
  });
});

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".css": "text/css",
  ".json": "application/json",
  ".woff2": "font/woff2",
};

async function serveFolder(folder: string): Promise<string> {
  const server = createServer((request, response) => {
    const path = join(folder, normalize(new URL(request.url ?? "/", "http://x").pathname));
    const file = statSync(path, { throwIfNoEntry: false })?.isFile() === true ? path : null;
    response.writeHead(file === null ? 404 : 200, { "content-type": TYPES[extname(path)] ?? "text/plain" });
    response.end(file === null ? "" : readFileSync(file));
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
