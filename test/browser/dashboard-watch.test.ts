/** Alerts and the telemetry of a gateway in the dashboard: rules are made, fire and send, and spans arrive. */
import type { Browser } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "vitest";
import { type OtlpReceiver, startOtlpReceiver } from "../peers/otlp-receiver.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { post } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

const SECRET = "a-secret-of-sixteen-or-more";

let provider: ProviderPeer;
let receiver: ProviderPeer;
let collector: OtlpReceiver;
let server: TestServer;
let browser: Browser;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 500, {}));
  receiver = await startProvider((_, response) => sendJson(response, 200, {}));
  collector = await startOtlpReceiver();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await provider.close();
  await receiver.close();
  await collector.close();
});
// A server for each try: a second one finds no alert, receiver or failed call of the first.
beforeEach(async () => {
  receiver.requests.length = 0;
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url } },
      outgoing: { allowPrivateHosts: true },
      alerts: { checkIntervalMs: 20 },
    },
  });
});
afterEach(() => server.stop());

const fail = () => post(server, "openai/chat/completions", { headers: { authorization: "Bearer sk" } });

it("an alert is created, sends a test notice, fires, is edited without its secret, and is deleted", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/alerts");
  await page.getByText("No alerts").waitFor();
  await page.getByRole("button", { name: "Create alert" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("Errors");
  await dialog.getByLabel("At least").fill("1");
  await dialog.getByLabel("Address").fill(`${receiver.url}/hook`);
  await dialog.getByLabel("Secret (optional)").fill(SECRET);
  await dialog.getByRole("button", { name: "Create alert" }).click();
  await dialog.waitFor({ state: "detached" });
  const row = page.getByRole("row", { name: /Errors/ });
  await row.getByText("ok", { exact: true }).waitFor();

  await row.getByRole("button", { name: "Notices of Errors" }).click();
  await dialog.getByText("No notice was sent yet.").waitFor();
  await dialog.getByRole("button", { name: "Send test notice" }).click();
  await dialog.getByText("delivered").waitFor();
  expect(receiver.requests[0]?.headers["webhook-signature"]).toMatch(/^v1,/);
  await page.keyboard.press("Escape");
  await dialog.waitFor({ state: "detached" });

  await fail();
  await waitUntil(
    () => receiver.requests,
    (all) => all.some(({ body }) => body.includes("alert.firing")),
  );
  await page.reload();
  await row.getByText("firing").waitFor();
  await row.getByText("100.0 %").waitFor();
  await row.getByRole("button", { name: "Edit Errors" }).click();
  expect(await dialog.getByLabel("Secret (optional)").inputValue()).toBe("[secret]");
  expect(await dialog.getByLabel("Fires at or above").inputValue()).toBe("5");
  await dialog.getByText(/Would have fired 1 time in the last day/).waitFor();
  await dialog.getByLabel("Fires at or above").fill("90");
  await dialog.getByRole("button", { name: "Save alert" }).click();
  await dialog.waitFor({ state: "detached" });
  await row.getByText(/≥ 90.0 %/).waitFor();

  await row.getByRole("button", { name: "Delete Errors" }).click();
  await dialog.getByRole("button", { name: "Delete" }).click();
  await page.getByText("No alerts").waitFor();
  await close();
});

it("a receiver of telemetry is added to a gateway, gets spans with its header, and its secret is not shown", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  const path = "/gateways/default/settings";
  await open(path);
  const panel = page.getByRole("region", { name: "OpenTelemetry" });
  /** A page that is left before the answer may take its request with it. */
  const save = () =>
    Promise.all([
      page.waitForResponse((response) => response.request().method() === "PUT"),
      panel.getByRole("button", { name: "Save telemetry" }).click(),
    ]);
  await panel.getByRole("button", { name: "Add receiver" }).click();
  await panel.getByLabel("Address").fill(`${collector.url}/v1/traces`);
  await panel.getByLabel("Format").selectOption("protobuf");
  await panel.getByLabel("Headers (optional)").fill("x-key: k-1234");
  await save();
  await page.reload();
  await settled(page);
  expect(await panel.getByLabel("Headers (optional)").inputValue()).toBe("x-key: [secret]");
  await fail();
  await waitUntil(
    () => collector.spans,
    (all) => all.length >= 2,
  );
  expect(collector.requests[0]?.headers).toMatchObject({
    "x-key": "k-1234",
    "content-type": "application/x-protobuf",
  });
  // What was read is sent back: the stored value stays.
  await panel.getByLabel("Send prompts and answers, too").check();
  await save();
  await page.reload();
  await settled(page);
  expect(await panel.getByLabel("Send prompts and answers, too").isChecked()).toBe(true);
  await panel.getByRole("button", { name: "Remove receiver 1" }).click();
  await save();
  await waitUntil(
    async () => (await server.api("GET", "/accounts/default/ai-gateway/gateways/default")).body as object,
    (body) => (body as { result: { otel: unknown } }).result.otel === null,
  );
  await close();
});
