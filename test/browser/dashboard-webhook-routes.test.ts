/** The routes of a source in the dashboard: drawn as they flow, edited with a try-out, their attempts side by side, and replays with a plan. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET, sendGeneric } from "../support/webhook-sender.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let server: TestServer;
let browser: Browser;
let receiver: Server;
let status = 500;

beforeAll(async () => {
  receiver = createServer((request, response) => {
    request.resume();
    response.writeHead(status, { "x-receiver": "erp" }).end("the answer of the receiver");
  });
  await new Promise<void>((resolve) => receiver.listen(0, "127.0.0.1", resolve));
  server = await startTestServer({
    environment: { WEBHOOK_SECRET: SECRET },
    file: { outgoing: { allowPrivateHosts: true } },
  });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  receiver.closeAllConnections();
  receiver.close();
});

it("a route is added, tried, drawn with its counts, and its failed events are looked at and replayed by a plan", async () => {
  // The agent receives it at once: the source has no routes yet.
  const first = await sendGeneric(server.url, "customer", { id: "0", type: "invoice.draft", total: 40 });
  expect(first.status).toBe(200);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks/sources/generic");
  await page.getByText("No routes: deliveries go to the agent").waitFor();
  await page.getByRole("button", { name: "Add route" }).click();
  await page.getByLabel("Name").fill("erp");
  const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hooks`;
  const settings = {
    when: { body: { total: { $gte: 100 } } },
    to: { url },
    retry: { strategy: "linear", intervalMs: 1000, count: 0 },
  };
  await page.getByLabel("Settings").fill(JSON.stringify(settings, null, 2));
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.getByRole("status").filter({ hasText: "would not match, because body total is 40" }).waitFor();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("filter on body").waitFor();
  for (const [id, total] of [
    ["1", 500],
    ["2", 700],
    ["3", 5],
  ] as const)
    expect((await sendGeneric(server.url, "customer", { id, type: "invoice.paid", total })).status).toBe(202);
  await page.getByRole("link", { name: "2 failed" }).waitFor();
  await page.getByRole("link", { name: "1 ignored" }).waitFor();
  await page
    .getByRole("region", { name: "Issues of generic" })
    .getByText("the receiver answered 500")
    .waitFor();

  await page.getByRole("button", { name: "Edit" }).click();
  await page.getByRole("button", { name: "Try", exact: true }).click();
  await page.getByRole("status").filter({ hasText: "would not match, because body total is 5" }).waitFor();
  await page.getByRole("button", { name: "Cancel" }).click();

  await page.getByRole("link", { name: "2 failed" }).click();
  await page.getByRole("heading", { level: 1, name: "Events" }).waitFor();
  await page.getByRole("link", { name: "invoice.paid" }).first().click();
  const attempt = page.getByRole("article", { name: "Attempt 1" });
  await attempt
    .getByRole("region", { name: "Response of attempt 1" })
    .filter({ hasText: "the answer of the receiver" })
    .waitFor();
  expect(await attempt.getByRole("region", { name: "Request of attempt 1" }).textContent()).toContain(
    `POST ${url}`,
  );

  status = 200;
  await open("/webhooks/sources/generic");
  await page.getByRole("button", { name: "Replay events…" }).click();
  await page.getByRole("button", { name: "Show the plan" }).click();
  await page.getByRole("status").filter({ hasText: "2 events, from" }).waitFor();
  await page.getByRole("button", { name: "Replay 2 events" }).click();
  await page.getByRole("status").filter({ hasText: "2 delivered" }).waitFor();
  await page.getByRole("button", { name: "Close", exact: true }).last().click();
  await page.getByRole("link", { name: "2 delivered" }).waitFor();
  await waitUntil(
    () => page.getByRole("region", { name: "Issues of generic" }).count(),
    (count) => count === 0,
  );
  await page.getByRole("button", { name: "Pause" }).click();
  await page.getByRole("button", { name: "Resume" }).waitFor();
  await close();
});
