/** What must be in view in a window of a small laptop: nothing that people look for is cut off or needs a sideways scroll. */
import { join } from "node:path";
import type { Browser, Locator } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

const LAPTOP = { width: 1200, height: 700 };

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  server = await startTestServer({
    environment: { GITHUB_WEBHOOK_SECRET: "a-secret-for-the-test" },
    file: { agents: { modules: [join(import.meta.dirname, "../fixtures/ticket-agent.ts")] } },
  });
  browser = await launchBrowser();
  const call = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "echo",
      messages: [{ role: "user", content: "Is there anything unusual in the latency of the night?" }],
    }),
  });
  expect(call.status).toBe(200);
  // Its queue fails with an error that is longer than a row.
  await post("/agents/ticket-agent/a-ticket-with-a-long-name-of-its-own/rpc/enqueue", [
    "broken by a text that is much longer than the room that a row of a table or of the timeline has for it",
  ]);
  await post("/accounts/default/webhooks/sources/github/test", {});
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

async function post(path: string, body: unknown): Promise<void> {
  expect((await server.api("POST", path, body)).status, path).toBe(200);
}

/** Pixels of an element's content that are cut off at the right. */
const cutOff = (element: Locator) =>
  element.evaluate<number, { scrollWidth: number; clientWidth: number }>(
    (box) => box.scrollWidth - box.clientWidth,
  );

it("shows the menu of the account in a low window", async () => {
  const { page, close } = await openDashboard(browser, server, { viewport: { width: 1200, height: 420 } });
  const box = await page.locator(".session-button").boundingBox();
  expect((box?.y ?? 0) + (box?.height ?? 0)).toBeLessThanOrEqual(420);
  await page.locator(".session-button").click();
  await page.locator(".session-menu").waitFor();
  // The last page of the navigation can be reached.
  await page.keyboard.press("Escape");
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Cluster" }).click();
  await page.getByRole("heading", { level: 1, name: "Cluster" }).waitFor();
  await close();
});

it.each(["/agents", "/agents/ticket-agent", "/webhooks/deliveries"])(
  "shows all columns of %s without a sideways scroll",
  async (path) => {
    const { page, open, close } = await openDashboard(browser, server, { viewport: LAPTOP });
    await open(path);
    await page.locator("tbody tr:visible").first().waitFor();
    await expect.poll(() => cutOff(page.locator(".table-scroll:visible"))).toBeLessThanOrEqual(0);
    await close();
  },
);

it("shows the method of a failed turn, however long its error is", async () => {
  const { page, open, close } = await openDashboard(browser, server, { viewport: LAPTOP });
  await open("/agents/ticket-agent/a-ticket-with-a-long-name-of-its-own");
  const method = page.locator(".turn-failed .turn-what code").first();
  await method.waitFor();
  expect(await cutOff(method)).toBeLessThanOrEqual(0);
  await close();
});

it("shows more of a prompt than its first word", async () => {
  const { page, open, close } = await openDashboard(browser, server, { viewport: LAPTOP });
  await open("/logs");
  const prompt = page.getByRole("cell", { name: /Is there anything/ });
  expect((await prompt.boundingBox())?.width).toBeGreaterThan(120);
  await close();
});
