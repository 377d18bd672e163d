import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let server: TestServer;
let browser: Browser;

const tag = (id: string, tags: Record<string, string>) =>
  server.api("PUT", "/accounts/default/tags", { resource_type: "kv_namespace", resource_id: id, tags });
const tagsOf = async (id: string) =>
  (await server.api("GET", `/accounts/default/tags?resource_type=kv_namespace&resource_id=${id}`)).body.result
    .tags as Record<string, string>;

beforeAll(async () => {
  server = await startTestServer();
  browser = await launchBrowser();
  await tag("cache", { env: "prod", team: "platform" });
  await tag("drafts", { env: "dev", team: "web" });
  await tag("sessions", { env: "prod", team: "web" });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

it("filters resources by tag and suggests keys and values", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tags");
  const rows = page.getByRole("region", { name: "Resources" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(3);
  const field = page.getByRole("combobox", { name: "Tag filter" });
  await field.fill("en");
  await page.getByRole("option", { name: /^env/ }).waitFor();
  await field.press("ArrowDown");
  await field.press("Enter");
  await expect.poll(() => field.inputValue()).toBe("env=");
  await page.getByRole("option", { name: /^prod/ }).click();
  await expect.poll(() => rows.count()).toBe(2);
  await field.fill("team!=web");
  await field.press("Enter");
  await expect.poll(() => rows.count()).toBe(1);
  await page.getByRole("link", { name: "cache" }).waitFor();
  await page.getByRole("button", { name: "Remove filter env=prod" }).click();
  await page.getByRole("button", { name: "Remove filter team!=web" }).click();
  await field.fill("=prod");
  await field.press("Enter");
  await page.getByRole("alert").filter({ hasText: "tag parameter must be in format" }).waitFor();
  await close();
});

it("edits several resources after a preview that changes nothing", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/tags?filters=${encodeURIComponent('["env=prod"]')}`);
  await page.getByLabel(/Select all 2/).check();
  await page.getByRole("button", { name: "Edit tags (2)" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Key" }).fill("owner");
  await dialog.getByRole("combobox", { name: "Value" }).fill("ada");
  await dialog.getByRole("button", { name: "Add tag" }).click();
  const second = dialog.getByRole("group", { name: "Tag 2" });
  await second.getByRole("combobox", { name: "Key" }).fill("team");
  await second.getByLabel("Remove").check();
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByText("Preview of changes").waitFor();
  expect(await dialog.locator(".tag-added").count()).toBe(2);
  expect(await dialog.locator(".tag-removed").count()).toBe(2);
  expect(await tagsOf("cache")).toEqual({ env: "prod", team: "platform" });
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "detached" });
  expect(await tagsOf("cache")).toEqual({ env: "prod", owner: "ada" });
  expect(await tagsOf("sessions")).toEqual({ env: "prod", owner: "ada" });
  expect(await tagsOf("drafts")).toEqual({ env: "dev", team: "web" });
  await close();
});

it("tags a new resource, shows its history, and does not overwrite a concurrent change", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tags");
  await page.getByRole("button", { name: "Tag a resource" }).click();
  await page.getByRole("dialog").getByLabel("ID", { exact: true }).fill("default");
  await page.getByRole("dialog").getByRole("button", { name: "Continue" }).click();
  await page.getByRole("heading", { level: 1, name: "default" }).waitFor();
  await page.getByRole("button", { name: "Edit tags" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Key" }).fill("env");
  await dialog.getByRole("combobox", { name: "Value" }).fill("dev");
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("button", { name: "Apply" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("region", { name: "Changes" }).getByRole("row", { name: /root/ }).waitFor();

  await page.getByRole("button", { name: "Edit tags" }).click();
  await dialog.getByRole("combobox", { name: "Value" }).first().fill("staging");
  await server.api("PUT", "/accounts/default/tags", {
    resource_type: "ai_gateway",
    resource_id: "default",
    tags: { env: "prod" },
  });
  await dialog.getByRole("button", { name: "Preview" }).click();
  await dialog.getByRole("alert").filter({ hasText: "1 of 1 resources cannot be changed" }).waitFor();
  expect(await dialog.getByRole("button", { name: "Apply" }).isDisabled()).toBe(true);
  await close();
});

it("lists keys and values with links to their resources, and shows new changes without a reload", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tags/keys");
  const env = page.locator(".key-list > li").filter({ has: page.getByRole("heading", { name: "env" }) });
  expect(await env.textContent()).toMatch(/\d resources?/);
  await env.getByRole("link", { name: "dev" }).click();
  await page.getByRole("link", { name: "drafts" }).waitFor();

  await open("/tags/changes");
  const rows = page.getByRole("region", { name: "Changes" }).locator("tbody tr");
  const before = await rows.count();
  await tag("added-later", { env: "test" });
  await expect.poll(() => rows.count()).toBe(before + 1);
  expect(await rows.first().textContent()).toContain("added-later");
  await close();
});
