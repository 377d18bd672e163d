/** The dashboard in a real browser, logged in through a login link, with everything that must not happen remembered. */
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import type { TestServer } from "../../support/test-server.ts";
import { openPage } from "./launch-browser.ts";

export interface Dashboard {
  readonly page: Page;
  /** Opens a page of the account `default`, e.g. `/tags`. */
  open(path: string): Promise<void>;
  /** No error in the console, no request to another host; then closes. */
  close(): Promise<void>;
}

export interface DashboardOptions extends BrowserContextOptions {
  /** Console messages that a test provokes on purpose. */
  readonly expectedProblems?: RegExp;
}

export async function openDashboard(
  browser: Browser,
  server: TestServer,
  { expectedProblems, ...options }: DashboardOptions = {},
): Promise<Dashboard> {
  const { page, problems, close } = await openPage(browser, options);
  const strangers: string[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(server.url).host) strangers.push(request.url());
  });
  await page.goto(server.service.createLoginLink());
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  return {
    page,
    async open(path) {
      await page.goto(`${server.url}/dashboard/accounts/default${path}`);
      await page.locator("h1").waitFor();
      await settled(page);
    },
    async close() {
      expect(problems.filter((problem) => expectedProblems?.test(problem) !== true)).toEqual([]);
      expect(strangers).toEqual([]);
      await close();
    },
  };
}

/** Resolves when nothing on the page says that it is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator(".loading").first().waitFor({ state: "detached" });
}
