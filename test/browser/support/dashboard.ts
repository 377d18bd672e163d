/** Opens the dashboard in a real browser, logged in through a login link, and records errors and requests to other hosts. */
import { setTimeout as sleep } from "node:timers/promises";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { expect } from "vitest";
import type { TestServer } from "../../support/test-server.ts";
import { openPage } from "./launch-browser.ts";

export interface Dashboard {
  readonly page: Page;
  /** Opens a page of the account `default`, e.g. `/tags`. */
  open(path: string): Promise<void>;
  /** Asserts that there was no console error and no request to another host, then closes the page. */
  close(): Promise<void>;
}

export interface DashboardOptions extends BrowserContextOptions {
  /** Console messages that the test causes intentionally. */
  readonly expectedProblems?: RegExp;
}

export async function openDashboard(
  browser: Browser,
  server: TestServer,
  { expectedProblems, ...options }: DashboardOptions = {},
): Promise<Dashboard> {
  const { page, problems, close } = await openPage(browser, options);
  const otherHosts: string[] = [];
  page.on("request", (request) => {
    if (new URL(request.url()).host !== new URL(server.url).host) otherHosts.push(request.url());
  });
  await page.goto(await server.service.createLoginLink());
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
      expect(otherHosts).toEqual([]);
      await close();
    },
  };
}

/** A part of a page that is too wide stays so; charts take the width of a smaller window some frames later. */
const WIDTH_LOOKS = 100;

/** The width of the page, as soon as it is within the limit, or after enough looks at it. */
export async function scrollWidth(page: Page, limit: number): Promise<number> {
  for (let looks = 1; ; looks++) {
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    if (width <= limit || looks === WIDTH_LOOKS) return width;
    await sleep(50);
  }
}

/** Resolves when no part of the page is loading. */
export async function settled(page: Page): Promise<void> {
  await page.locator(".loading").first().waitFor({ state: "detached" });
}
