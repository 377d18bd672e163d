import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  server = await startTestServer();
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

it("creates a token that is shown once, lists it, and revokes it", async () => {
  // Those of a first try.
  const { body } = await server.api("GET", "/accounts/default/tokens");
  for (const { id } of body.result as { id: string }[])
    await server.api("DELETE", `/accounts/default/tokens/${id}`);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tokens");
  await page.getByText("No tokens yet").waitFor();
  await page.getByRole("button", { name: "Create token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("ci-deploys");
  await dialog.getByRole("checkbox", { name: /tags\.read/ }).check();
  await dialog.getByLabel("Expires").selectOption("30");
  await dialog.getByRole("button", { name: "Create token" }).click();
  const text = (await dialog.getByTestId("new-token").textContent()) ?? "";
  expect((await server.api("GET", "/accounts/default/tags/keys", undefined, text)).status).toBe(200);
  await dialog.getByRole("button", { name: "Done" }).click();

  await page.reload();
  const row = page.getByRole("row", { name: /ci-deploys/ });
  await row.waitFor();
  expect(await row.textContent()).toContain(`…${text.slice(-4)}`);
  expect(await row.textContent()).toContain("tags.read");
  // The token expires in 30 days, less the time since its creation.
  expect(await row.textContent()).toMatch(/in (29|30) d/);
  expect(await page.content()).not.toContain(text);

  await row.getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke" }).click();
  await page.getByText("No tokens yet").waitFor();
  expect((await server.api("GET", "/accounts/default/tags/keys", undefined, text)).status).toBe(401);
  await close();
});
