/** The pages of the examples in a real browser: each is opened at the printed address, and shows what happens while it is open. */
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
  readonly secretIn?: string;
  /** Delivers an event to the printed address of the service, or writes on the page. */
  send(address: string, page: Page): Promise<unknown>;
  /** What the page shows by itself, and what it shows after that. */
  sample(page: Page): Locator;
  sent(page: Page): Locator;
  /** What else the example promises, on the page after that. */
  more?(page: Page, address: string): Promise<void>;
}

const PAGES: Readonly<Record<string, ExamplePage>> = {
  chat: {
    send: (_, page) => write(page, "Message", "Please buy a very particular cheese."),
    sample: (page) => page.getByText("live", { exact: true }),
    sent: (page) => page.getByText("Done. 1 on the list: a very particular cheese."),
    async more(page) {
      const list = (of: Page) => of.getByLabel("Shopping list").getByRole("listitem");
      expect(await list(page).allTextContents()).toEqual(["a very particular cheese"]);
      const other = await openPage(browser);
      await other.page.goto(page.url());
      await other.page.getByText("Please buy a very particular cheese.").waitFor();
      expect(await list(other.page).count()).toBe(1);
      await write(other.page, "Message", "remove a very particular cheese");
      // On the first page it was not asked: it shows the state.
      await page.getByText("Done. The list is empty now.").waitFor();
      expect(await list(page).count()).toBe(0);
      expect(other.problems).toEqual([]);
      await other.close();
    },
  },
  "device-fleet": {
    secretIn: "DEVICES_WEBHOOK_SECRET",
    send: (address) => sendSigned(address, { device: "kiln", temperature: 987.6 }),
    sample: (page) => page.getByRole("listitem", { name: "boiler" }).getByText("online"),
    sent: (page) => page.getByRole("listitem", { name: "kiln" }).getByText("987.6 °C"),
  },
  handbook: {
    send: (_, page) => write(page, "Question", "What does a week on call pay?"),
    sample: (page) => page.getByText("3 documents, 9 passages"),
    sent: (page) => page.getByLabel("Answer").getByText("the morning is free. [1]"),
    async more(page, address) {
      const sources = page.getByLabel("Sources").getByRole("listitem");
      expect(await sources.first().textContent()).toContain("On call › What it pays on-call.md");
      // Operators of the search are words of a question.
      await write(page, "Question", 'zebra* NEAR("unicorn" ^ -');
      await page.getByText("The handbook says nothing about that.").waitFor();
      expect(await sources.count()).toBe(0);
      const put = await fetch(`${address}/agents/handbook/company/rpc/put`, {
        method: "POST",
        body: JSON.stringify(["holidays.md", "# Holidays\nNone."]),
      });
      expect(put.ok).toBe(false);
      await write(page, "Question", "holiday days per year");
      await page.getByLabel("Answer").getByText("28 days of paid holiday").waitFor();
    },
  },
  "live-repository": {
    secretIn: "GITHUB_WEBHOOK_SECRET",
    send: (address) => deliver(address, SECRET, issue("acme/widgets")),
    sample: (page) => page.locator("section li").first(),
    sent: (page) => page.getByLabel("acme/widgets").getByText("A very particular title"),
    async more(page, address) {
      const repository = "Test/Own-Repo";
      const other = await openPage(browser);
      await other.page.goto(page.url());
      const pages = [page, other.page];
      for (const one of pages) {
        await one.getByLabel("Follow").fill(repository);
        await one.getByRole("button", { name: "Add" }).click();
        await one.getByLabel(repository).getByText("0 events").waitFor();
      }
      expect(await deliver(address, SECRET, issue(repository))).toBe(200);
      expect(await deliver(address, "another secret", issue(repository))).toBe(401);
      for (const one of pages) {
        const panel = one.getByLabel(repository);
        await panel.getByText("1 event", { exact: true }).waitFor();
        await panel.getByText("A very particular title").waitFor();
        expect(await panel.locator("li").count()).toBe(1);
      }
      expect(other.problems).toEqual([]);
      await other.close();
    },
  },
  "slack-bot": {
    secretIn: "SLACK_WEBHOOK_SECRET",
    send: (_, page) => write(page, "Message", "A very particular question"),
    sample: (page) => page.getByRole("heading", { name: "# general" }),
    sent: (page) => page.locator(".reply").getByText("A very particular question"),
    async more(page, address) {
      const event = { type: "app_mention", channel: "C0GENERAL", text: "<@U0BOT> Only once", ts: "1.1" };
      expect(await sendSlackEvent(address, SECRET, "Ev1", event)).toBe(202);
      // Slack repeats a delivery that it believes lost.
      expect(await sendSlackEvent(address, SECRET, "Ev1", event)).toBe(200);
      expect(await sendSlackEvent(address, "another secret", "Ev2", event)).toBe(401);
      expect(await sendSlackEvent(address, SECRET, "Ev3", { ...event, type: "channel_rename" })).toBe(200);
      await write(page, "Message", "And another one");
      await page.locator(".reply").getByText("And another one").nth(1).waitFor();
      expect(await page.getByText("Only once").count()).toBe(1);
    },
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
  const { secretIn } = PAGES[name] ?? {};
  const secrets = secretIn === undefined ? {} : { [secretIn]: SECRET };
  example = runExample(name, ["--port", "0", "--data-dir", folder], secrets);
  const [, pageUrl = ""] = await example.printed(/Open (http:\S+)/);
  const [, deliveryUrl = ""] = await example.printed(/(?:go to|is at) (http:\S+)/);
  return { pageUrl, deliveryUrl };
}

it("every example with a page is opened here", () => {
  const found = globSync("*/index.html", { cwd: join(import.meta.dirname, "../../examples") });
  expect(found.map((file) => dirname(file)).sort()).toEqual(Object.keys(PAGES));
});

for (const [name, { send, sample, sent, more }] of Object.entries(PAGES)) {
  it(`${name}: the page shows what it begins with, and then what happens, without a reload`, async () => {
    const { pageUrl, deliveryUrl } = await start(name);
    const { page, problems, close } = await openPage(browser, { colorScheme: "dark" });
    await page.goto(pageUrl);
    await sample(page).waitFor();
    await page.evaluate("globalThis.isTheSameDocument = true");
    await send(deliveryUrl, page);
    await sent(page).waitFor();
    await more?.(page, deliveryUrl);
    expect(await page.evaluate("globalThis.isTheSameDocument")).toBe(true);
    expect(await seriousViolations(page)).toEqual([]);
    expect(problems).toEqual([]);
    await close();
  });
}

async function write(page: Page, field: string, text: string): Promise<void> {
  await page.getByLabel(field).fill(text);
  await page.getByLabel(field).press("Enter");
}

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

async function sendSlackEvent(address: string, secret: string, id: string, event: object): Promise<number> {
  const body = JSON.stringify({ type: "event_callback", team_id: "T0ACME", event_id: id, event });
  const time = String(Math.floor(Date.now() / 1000));
  const signature = createHmac("sha256", secret).update(`v0:${time}:${body}`).digest("hex");
  const response = await fetch(address, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "x-slack-request-timestamp": time,
      "x-slack-signature": `v0=${signature}`,
    },
    body,
  });
  return response.status;
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
