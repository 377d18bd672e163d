import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { SqliteConnection } from "../../packages/signalbox/src/engines/sqlite-file/connection.ts";
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
  server = await startTestServer({ file: { tags: { maxTagsPerResource: 3 } } });
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

/** Works on the database as another node would. */
function inDatabase(text: string): void {
  const connection = SqliteConnection.open(join(server.dataDir, "signalbox.db"));
  connection.exec(text);
  connection.close();
}

it("shows the progress of a job, and cancels it", async () => {
  // A job that another node works on makes the progress that the test chooses.
  const request = {
    query: {
      filters: [{ kind: "in", key: "env", values: ["prod"] }],
      types: [],
      ids: [],
      name: null,
      isCaseInsensitive: false,
    },
    operation: "patch",
    tags: [
      ["owner", "ada"],
      ["team", null],
    ],
  };
  const now = Date.now();
  inDatabase(`INSERT INTO tag_job (id, account_id, actor, request, state, upto, position, total, changed, unchanged, failed,
      created_at, started_at, runner, runner_until)
    VALUES ('0000000000', 'default', 'root', '${JSON.stringify(request)}', 'running', 1, 0, 12000, 3000, 400, 0,
      ${now}, ${now}, 'another', ${now + 86_400_000})`);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tags/jobs");
  const jobs = page.getByRole("region", { name: "Jobs" });
  const row = jobs.getByRole("row").filter({ hasText: "ada" });
  await row.getByText("3,400 of 12,000").waitFor();
  expect(await row.getByRole("progressbar").getAttribute("value")).toBe("3400");
  inDatabase("UPDATE tag_job SET changed = 9000 WHERE id = '0000000000'");
  await row.getByText("9,400 of 12,000").waitFor();
  await row.getByRole("link").click();
  await page.getByRole("heading", { level: 1, name: "Job" }).waitFor();
  await page.getByRole("button", { name: "Cancel job" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("button", { name: "Keep running" }).click();
  await dialog.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Cancel job" }).click();
  await dialog.getByRole("button", { name: "Cancel job" }).click();
  await page.getByRole("region", { name: "Progress and result" }).getByText("cancelled").waitFor();
  await page.getByRole("button", { name: "Cancel job" }).waitFor({ state: "detached" });
  const { body } = await server.api("GET", "/accounts/default/tags/jobs/0000000000");
  expect(body.result).toMatchObject({ state: "cancelled", changed: 9000 });
  await close();
});

it("starts a job on all resources that match, and lists those that it could not change", async () => {
  const items = Array.from({ length: 110 }, (_, i) => ({
    resource_type: "kv_namespace",
    resource_id: `ns-${i}`,
    tags: { site: "berlin", ...(i === 7 ? { a: "1", b: "2" } : {}) },
  }));
  await server.api("POST", "/accounts/default/tags/bulk", { items });
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/tags?filters=${encodeURIComponent('["site=berlin"]')}`);
  await page.getByLabel("Select all 100").check();
  await page.getByRole("button", { name: "Edit all in the background" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Key" }).fill("owner");
  await dialog.getByRole("combobox", { name: "Value" }).fill("eve");
  await dialog.getByRole("button", { name: "Change 110 resources" }).click();
  await page.getByRole("heading", { level: 1, name: "Job" }).waitFor();
  const result = page.getByRole("region", { name: "Progress and result" });
  await result.getByText("done").waitFor();
  await result.getByText("site=berlin").waitFor();
  await page
    .getByRole("region", { name: "Failures" })
    .getByRole("link", { name: "ns-7", exact: true })
    .waitFor();
  expect(await tagsOf("ns-8")).toEqual({ site: "berlin", owner: "eve" });
  expect(await tagsOf("ns-7")).toEqual({ site: "berlin", a: "1", b: "2" });
  await page.getByRole("navigation", { name: "Breadcrumb" }).getByRole("link", { name: "Jobs" }).click();
  const row = page.getByRole("region", { name: "Jobs" }).getByRole("row").filter({ hasText: "eve" });
  await row.waitFor();
  expect(await row.getByRole("cell").allTextContents()).toEqual(expect.arrayContaining(["done", "109", "1"]));
  await close();
});
