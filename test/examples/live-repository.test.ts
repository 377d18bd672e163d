import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Browser } from "playwright-core";
import { deliver } from "../../examples/live-repository/sample-events.ts";
import { launchBrowser, openPage } from "../browser/support/launch-browser.ts";
import { runExample, type RunningExample } from "./run-example.ts";

const SECRET = "the webhook secret of the test";

let browser: Browser;
let folder: string;
let example: RunningExample;
let pageUrl: string;
let serviceUrl: string;
let tries = 0;

beforeAll(async () => {
  browser = await launchBrowser();
  folder = await mkdtemp(join(tmpdir(), "signalbox-live-repository-"));
  example = runExample("live-repository", ["--port", "0", "--data-dir", folder], {
    GITHUB_WEBHOOK_SECRET: SECRET,
  });
  pageUrl = (await example.printed(/Open (http:\S+)/))[1] ?? "";
  serviceUrl = (await example.printed(/Deliveries go to (http:\S+)\/webhooks\/github/))[1] ?? "";
});

afterAll(async () => {
  await browser?.close();
  await example?.stop();
  await rm(folder, { recursive: true, force: true });
});

describe("the live repository page", () => {
  it("sample events appear without user action", async () => {
    const { page, problems, close } = await openPage(browser);
    await page.goto(pageUrl);
    await page.locator("section li").first().waitFor();
    expect(problems).toEqual([]);
    await close();
  });

  it("a signed delivery for a followed repository appears once on every open page", async () => {
    // Another repository for each try.
    const repository = `Test/Own-Repo-${++tries}`;
    const watched = await Promise.all([openPage(browser), openPage(browser)]);
    for (const { page } of watched) {
      await page.goto(pageUrl);
      await page.getByLabel("Follow").fill(repository);
      await page.getByRole("button", { name: "Add" }).click();
      await page.getByLabel(repository).getByText("0 events").waitFor();
    }
    const payload = {
      action: "opened",
      issue: { number: 7, title: "A very particular title" },
      repository: { full_name: repository },
      sender: { login: "tester" },
    };
    expect(await deliver(serviceUrl, SECRET, { type: "issues", payload })).toBe(200);
    expect(await deliver(serviceUrl, "another secret", { type: "issues", payload })).toBe(401);
    for (const { page, problems, close } of watched) {
      const panel = page.getByLabel(repository);
      await panel.getByText("1 event", { exact: true }).waitFor();
      await panel.getByText("A very particular title").waitFor();
      expect(await panel.locator("li").count()).toBe(1);
      expect(problems).toEqual([]);
      await close();
    }
  });
});
