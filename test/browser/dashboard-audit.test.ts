/** The dashboard's audit log, usage by whom, logs of all gateways, and what can be done with a call. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { type Dashboard, openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let server: TestServer;
let browser: Browser;
let dashboard: Dashboard;
/** Set it to keep pictures of the pages. */
const pictures = process.env["SIGNALBOX_PICTURES"];

beforeAll(async () => {
  server = await startTestServer();
  browser = await launchBrowser();
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "second" });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/second", { cache_ttl: 60 });
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "second" });
  for (const [owner, text, gateway] of [
    ["ada", "What is the capital of France?", "default"],
    ["bob", "Write a haiku about trains", "second"],
  ] as const) {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: `${owner}'s key`,
      permissions: ["gateway.run"],
      owner,
    });
    const { token } = body.result as { token: string };
    const answer = await fetch(`${server.url}/v1/default/${gateway}/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "gw-aig-authorization": `Bearer ${token}` },
      body: JSON.stringify({ model: "echo", stream: true, messages: [{ role: "user", content: text }] }),
    });
    await answer.text();
  }
  dashboard = await openDashboard(browser, server);
});
afterAll(async () => {
  await dashboard.close();
  await browser.close();
  await server.stop();
});

async function picture(name: string): Promise<void> {
  if (pictures !== undefined)
    await dashboard.page.screenshot({ path: `${pictures}/${name}.png`, fullPage: true });
}

it("the audit log shows who changed what, with the changed members", async () => {
  const { page } = dashboard;
  await dashboard.open("/audit");
  await page.getByText("refused 409").waitFor();
  await picture("audit");
  await page.getByRole("button", { name: "update gateways / second" }).click();
  const row = page.getByRole("dialog").getByRole("row", { name: /cache_ttl/ });
  await row.waitFor();
  expect(await row.innerText()).toMatch(/null\s+60/);
  await picture("audit-entry");
  await page.getByRole("button", { name: "Close" }).click();
  await page.getByLabel("Outcome").selectOption("refused");
  await page.getByText("success 200").first().waitFor({ state: "detached" });
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByText("Export CSV").click()]);
  expect(download.suggestedFilename()).toBe("audit-log.csv");
});

it("usage is shown by token, owner and metadata", async () => {
  const { page } = dashboard;
  await dashboard.open("/usage?by=owner");
  await page.getByRole("row", { name: /^ada 1/ }).waitFor();
  await picture("usage-by-whom");
  await page.getByLabel("By", { exact: true }).selectOption("token");
  await page.getByRole("row", { name: /^bob's key 1/ }).waitFor();
  await page.getByLabel("By", { exact: true }).selectOption("metadata");
  await page.getByRole("row", { name: /^none 2/ }).waitFor();
});

it("calls of all gateways are found by their text, and a call leads to its neighbours, a command and a replay", async () => {
  const { page } = dashboard;
  await dashboard.open("/logs");
  await page.getByText("Write a haiku about trains").first().waitFor();
  await picture("logs-all");
  await page.getByLabel("Search", { exact: true }).fill("CAPITAL of fr");
  await page.getByText("haiku").first().waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Calls" }).getByRole("link").first().click();
  await page.getByRole("link", { name: "Open call" }).click();
  await page.getByRole("heading", { level: 1, name: "Call" }).waitFor();
  await settled(page);
  const command = page.waitForResponse((response) => response.url().endsWith("/curl"));
  await page.getByRole("button", { name: "Copy as curl" }).click();
  expect(await (await command).text()).toContain("$SIGNALBOX_TOKEN");
  await page.getByRole("region", { name: "Timeline" }).getByText("200").waitFor();
  await page.getByPlaceholder("the same, or provider/model").fill("echo/other");
  await page.getByRole("button", { name: "Send" }).click();
  await page.getByText("Status 200.").waitFor();
  await picture("call");
  await page.getByRole("link", { name: "Open the new call" }).click();
  await page.getByRole("link", { name: "← Older" }).click();
  await page.getByRole("link", { name: "Newer →" }).waitFor();
});
