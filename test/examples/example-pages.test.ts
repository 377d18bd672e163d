/** The pages of the examples in a real browser: each is opened at the printed address, and shows an event that arrives while it is open. */
import { createHmac } from "node:crypto";
import { globSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { Browser, Locator, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { deliver } from "../../examples/live-repository/sample-events.ts";
import { launchBrowser, openPage } from "../browser/support/launch-browser.ts";
import { seriousViolations } from "../browser/support/serious-violations.ts";
import { runExample, type RunningExample } from "./run-example.ts";

const SECRET = "the webhook secret of the test";

interface ExamplePage {
  /** Variable with the secret of the deliveries. */
  readonly secretIn: string;
  /** Delivers an event to the printed address. */
  send(address: string): Promise<unknown>;
  /** What the page shows by itself, and what it shows after the event. */
  sample(page: Page): Locator;
  sent(page: Page): Locator;
}

const PAGES: Readonly<Record<string, ExamplePage>> = {
  "device-fleet": {
    secretIn: "DEVICES_WEBHOOK_SECRET",
    send: (address) => sendSigned(address, { device: "kiln", temperature: 987.6 }),
    sample: (page) => page.getByRole("listitem", { name: "boiler" }).getByText("online"),
    sent: (page) => page.getByRole("listitem", { name: "kiln" }).getByText("987.6 °C"),
  },
  "live-repository": {
    secretIn: "GITHUB_WEBHOOK_SECRET",
    send: (address) => deliver(address, SECRET, issue("acme/widgets")),
    sample: (page) => page.locator("section li").first(),
    sent: (page) => page.getByLabel("acme/widgets").getByText("A very particular title"),
  },
  "support-inbox": {
    secretIn: "TICKETS_WEBHOOK_SECRET",
    send: (address) =>
      sendSigned(address, {
        mailbox: "acme",
        ticket_id: "T-of-the-test",
        from: "eve@example.com",
        subject: "A very particular subject",
        text: "A very particular question.",
      }),
    sample: (page) => page.getByText("Answer this ticket in two sentences").first(),
    sent: (page) =>
      page.getByRole("listitem", { name: "A very particular subject" }).getByText("particular question"),
  },
};

let browser: Browser;
let folder: string;
let example: RunningExample | undefined;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-example-page-"));
});
afterEach(async () => {
  await example?.stop();
  example = undefined;
  await rm(folder, { recursive: true, force: true });
});

/** The printed addresses of the page and of the deliveries. */
async function start(name: string): Promise<{ pageUrl: string; deliveryUrl: string }> {
  const { secretIn = "" } = PAGES[name] ?? {};
  example = runExample(name, ["--port", "0", "--data-dir", folder], { [secretIn]: SECRET });
  const [, pageUrl = ""] = await example.printed(/Open (http:\S+)/);
  const [, deliveryUrl = ""] = await example.printed(/go to (http:\S+)/);
  return { pageUrl, deliveryUrl };
}

it("every example with a page is opened here", () => {
  const found = globSync("*/index.html", { cwd: join(import.meta.dirname, "../../examples") });
  expect(found.map((file) => dirname(file)).sort()).toEqual(Object.keys(PAGES));
});

for (const [name, { send, sample, sent }] of Object.entries(PAGES)) {
  it(`${name}: the page shows a sample and then a delivered event, without a reload`, async () => {
    const { pageUrl, deliveryUrl } = await start(name);
    const { page, problems, close } = await openPage(browser, { colorScheme: "dark" });
    await page.goto(pageUrl);
    await sample(page).waitFor();
    await page.evaluate("globalThis.isTheSameDocument = true");
    await send(deliveryUrl);
    await sent(page).waitFor();
    expect(await page.evaluate("globalThis.isTheSameDocument")).toBe(true);
    expect(await seriousViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
}

it("live-repository: a signed delivery for a followed repository appears once on every open page", async () => {
  const { pageUrl, deliveryUrl } = await start("live-repository");
  const repository = "Test/Own-Repo";
  const watched = await Promise.all([openPage(browser), openPage(browser)]);
  for (const { page } of watched) {
    await page.goto(pageUrl);
    await page.getByLabel("Follow").fill(repository);
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByLabel(repository).getByText("0 events").waitFor();
  }
  expect(await deliver(deliveryUrl, SECRET, issue(repository))).toBe(200);
  expect(await deliver(deliveryUrl, "another secret", issue(repository))).toBe(401);
  for (const { page, problems, close } of watched) {
    const panel = page.getByLabel(repository);
    await panel.getByText("1 event", { exact: true }).waitFor();
    await panel.getByText("A very particular title").waitFor();
    expect(await panel.locator("li").count()).toBe(1);
    expect(problems).toEqual([]);
    await close();
  }
});

function issue(repository: string) {
  return {
    type: "issues",
    payload: {
      action: "opened",
      issue: { number: 7, title: "A very particular title" },
      repository: { full_name: repository },
      sender: { login: "tester" },
    },
  };
}

async function sendSigned(address: string, payload: object): Promise<void> {
  const body = JSON.stringify(payload);
  const signature = createHmac("sha256", SECRET).update(body).digest("hex");
  const response = await fetch(address, {
    method: "POST",
    headers: { "content-type": "application/json", "x-signature": `sha256=${signature}` },
    body,
  });
  expect(response.status).toBe(200);
}
