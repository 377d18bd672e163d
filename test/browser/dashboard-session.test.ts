/** Login by link and by token, the overview page, logout, and the theme. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  server = await startTestServer({ environment: { WEBHOOK_SECRET: "a-secret-for-the-test" } });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

it("opens the overview from a login link and stores no credential in the URL or in web storage", async () => {
  const { page, close } = await openDashboard(browser, server);
  expect(new URL(page.url()).pathname).toBe("/dashboard/accounts/default");
  expect(page.url()).not.toContain("code");
  const stored = await page.evaluate<string>(
    "JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])",
  );
  expect(JSON.parse(stored)).toEqual([{}, {}, ""]);
  const entries = await page.getByRole("navigation", { name: "Main" }).getByRole("link").allTextContents();
  expect(entries.length).toBeGreaterThan(15);
  expect(new Set(entries).size).toBe(entries.length);
  await close();
});

it("lists first steps whose commands succeed in their order, and marks those that are done", async () => {
  const { page, close } = await openDashboard(browser, server, {
    permissions: ["clipboard-read", "clipboard-write"],
  });
  await page.getByText("Nothing is wrong.").waitFor();
  const steps = page.getByRole("region", { name: "First steps" }).locator("ol > li");
  await steps.first().waitFor();
  expect(await steps.getByRole("heading").allTextContents()).toEqual([
    expect.stringMatching(/echo provider/),
    expect.stringMatching(/^Send a signed webhook/),
    expect.stringMatching(/^Show the agent's instance/),
    expect.stringMatching(/^Tag the default gateway/),
  ]);
  const outputs: string[] = [];
  for (const step of await steps.all()) {
    // The button says it for two seconds: the wait begins before the click.
    await Promise.all([
      step.getByRole("button", { name: "Copied" }).waitFor(),
      step.getByRole("button", { name: "Copy" }).click(),
    ]);
    const command = await page.evaluate<string>("navigator.clipboard.readText()");
    const { stdout } = await promisify(execFile)("bash", ["-c", `set -o pipefail; ${command}`], {
      env: { ...process.env, SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    });
    outputs.push(stdout);
  }
  expect(outputs).toEqual([
    expect.stringContaining('"choices"'),
    expect.stringContaining('"status":"processed"'),
    // The event of the second step.
    expect.stringContaining('"eventCount": 1'),
    expect.stringContaining("env"),
  ]);
  await page.reload();
  await expect.poll(() => steps.getByText("done").count()).toBe(4);
  await close();
});

it("reports that a login link has been used, and accepts a token instead", async () => {
  const link = await server.service.createLoginLink();
  await fetch(link, { redirect: "manual" });
  const { page, problems, close } = await openPage(browser);
  await page.goto(link);
  await page.getByText("has expired or has already been used").waitFor();
  await page.getByLabel("Token").fill(await server.token(["tags.read"]));
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  const navigation = page.getByRole("navigation", { name: "Main" });
  // Only the pages that the token has permissions for.
  expect(await navigation.getByRole("link").allTextContents()).toEqual(["Overview", "Tags"]);
  // Groups without a page that the token may open have no title.
  expect(await navigation.getByText("Gateway").count()).toBe(0);
  expect(problems).toEqual([]);
  await close();
});

it("rejects an invalid token with a reason", async () => {
  const { page, close } = await openPage(browser);
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Token").fill("sbx_not-a-token");
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("alert").filter({ hasText: "unknown, expired or revoked" }).waitFor();
  await close();
});

it("ends the session in the current tab, in other tabs and on the server", async () => {
  const { page, close } = await openDashboard(browser, server);
  const other = await page.context().newPage();
  await other.goto(`${server.url}/dashboard/`);
  await other.getByRole("heading", { name: "Overview" }).waitFor();
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Strict" });
  await page.getByRole("button", { name: "Account and theme" }).click();
  await page.getByRole("button", { name: "Log out" }).click();
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await other.getByRole("heading", { name: "Log in" }).waitFor();
  expect(await page.context().cookies()).toEqual([]);
  const replay = await fetch(`${server.url}/accounts`, {
    headers: { cookie: `${cookie?.name ?? ""}=${cookie?.value ?? ""}` },
  });
  expect(replay.status).toBe(401);
  await close();
});

it("shows the login page when the session ends while a page is open", async () => {
  const created = await server.api("POST", "/accounts/default/tokens", {
    name: "short-lived",
    permissions: ["tokens.edit"],
  });
  const { page, close } = await openPage(browser);
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Token").fill(created.body.result.token as string);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  await server.api("DELETE", `/accounts/default/tokens/${created.body.result.id as string}`);
  // The page asks again by itself, too: then the link is gone.
  await page
    .getByRole("link", { name: "Tokens" })
    .click({ timeout: 5000 })
    .catch(() => undefined);
  await page.getByRole("heading", { name: "Log in" }).waitFor();
  await close();
});

it("keeps the selected theme after a reload", async () => {
  const { page, close } = await openDashboard(browser, server, { colorScheme: "light" });
  const background = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
  const light = await background();
  await page.getByRole("button", { name: "Account and theme" }).click();
  await page.getByLabel("Theme", { exact: true }).selectOption("dark");
  const dark = await background();
  expect(dark).not.toBe(light);
  await page.reload();
  await page.getByRole("heading", { name: "Overview" }).waitFor();
  expect(await background()).toBe(dark);
  await close();
});
