/** The dashboard as a place to work: playground, palette, messages, time ranges, edits of everything that matches, recovery, phone. */
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { type Dashboard, openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";
import { seriousViolations } from "./support/serious-violations.ts";

let server: TestServer;
let browser: Browser;
let dashboard: Dashboard;

const PIXEL =
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const gateways = "/accounts/default/ai-gateway/gateways";

beforeAll(async () => {
  server = await startTestServer();
  browser = await launchBrowser();
  await server.api("POST", gateways, { id: "closed", authentication: true });
  dashboard = await openDashboard(browser, server, {
    expectedProblems: /ERR_INTERNET_DISCONNECTED|status of 40[014]/,
  });
});
afterAll(async () => {
  await dashboard.close();
  await browser.close();
  await server.stop();
});

async function call(body: object, gateway = "default"): Promise<string> {
  const response = await fetch(`${server.url}/v1/default/${gateway}/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", "gw-aig-metadata": '{"user":"ada","team":"search"}' },
    body: JSON.stringify({ model: "echo", ...body }),
  });
  await response.text();
  return response.headers.get("gw-aig-log-id") ?? "";
}

it("loads the first page with less than 170 KB, compressed, a font of 48 KB included", async () => {
  const context = await browser.newContext();
  const fresh = await context.newPage();
  const sizes: Promise<number>[] = [];
  fresh.on("requestfinished", (request) => {
    if (new URL(request.url()).pathname.startsWith("/dashboard"))
      sizes.push(
        request.sizes().then(
          ({ responseBodySize }) => responseBodySize,
          // A request that ends together with the page is not part of the sum.
          () => 0,
        ),
      );
  });
  await fresh.goto(await server.service.createLoginLink());
  await fresh.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await settled(fresh);
  const bytes = (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
  await context.close();
  expect(bytes).toBeGreaterThan(20_000);
  expect(bytes).toBeLessThan(170_000);
});

it("the playground calls a closed gateway with a token made for it, with the code in step, and links to the log", async () => {
  const { page, open } = dashboard;
  await open("/gateways/closed/playground");
  // By key, as people type: the first one must not close the part of the page that has the field.
  await page.getByLabel("Gateway token").pressSequentially("sbx");
  expect(await page.getByLabel("Gateway token").inputValue()).toBe("sbx");
  expect(await page.getByLabel("Gateway token").isVisible()).toBe(true);
  await page.getByRole("button", { name: "Create a token for one hour" }).click();
  await expect.poll(() => page.getByLabel("Gateway token").inputValue()).toMatch(/^sbx_/);
  const token = await page.getByLabel("Gateway token").inputValue();
  await page.getByLabel("Message 1", { exact: true }).fill("**Bold** and `code`");
  await page.getByLabel("Temperature").fill("0.5");
  const code = page.getByRole("region", { name: "Code of the request" });
  expect(await code.textContent()).toContain("**Bold** and `code`");
  await page.getByRole("tab", { name: "OpenAI (Python)" }).click();
  expect(await code.textContent()).toContain("temperature=0.5");
  expect(await code.textContent()).not.toContain(token);
  await page.getByRole("button", { name: "Send" }).click();
  const answer = page.getByRole("region", { name: "Answer", exact: true });
  await answer.locator(".message strong").filter({ hasText: "Bold" }).waitFor();
  await answer.getByText(/\d+ → \d+|\d+ in, \d+ out/).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await answer.getByRole("link", { name: "Open the call in the log" }).click();
  await page.getByRole("heading", { level: 1, name: "Call" }).waitFor();
  await page.getByRole("region", { name: "Timeline" }).getByText("echo/echo").waitFor();
  await page.goBack();
  // The token survives a change of pages, and is in no storage.
  await expect.poll(() => page.getByLabel("Gateway token").inputValue()).toBe(token);
  // The same request to two models; a call of the log fills the form.
  await page.getByRole("button", { name: "Compare with another model" }).click();
  await page.getByRole("combobox", { name: "Model 2" }).fill("echo/other");
  await page.keyboard.press("Escape");
  await page.getByLabel("Message 1", { exact: true }).fill("Both");
  await page.getByRole("button", { name: "Send" }).click();
  for (const name of ["echo/echo", "echo/other"])
    await page.getByRole("region", { name, exact: true }).locator(".message").getByText("Both").waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await page
    .getByRole("region", { name: "echo/other", exact: true })
    .getByRole("link", { name: "Open the call in the log" })
    .click();
  await page.getByRole("link", { name: "Open in playground" }).click();
  await expect.poll(() => page.getByLabel("Message 1", { exact: true }).inputValue()).toBe("Both");
  expect(await page.getByRole("combobox", { name: "Model", exact: true }).inputValue()).toBe("echo/other");
  const stored = await page.evaluate<string>("JSON.stringify([{ ...localStorage }, { ...sessionStorage }])");
  expect(stored).not.toContain("sbx_");
  await page.reload();
  await expect.poll(() => page.getByLabel("Gateway token").inputValue()).toBe("");
});

it("shows markdown, tool calls and images of messages without running or loading anything, and lists previews", async () => {
  const { page, open } = dashboard;
  const hostile =
    '# Title\n\n<img src=x onerror="window.broken=1"><script>window.broken=1</script>\n\n[run](javascript:window.broken=1) ![far](https://far.example/x.png)';
  const id = await call({
    messages: [
      {
        role: "user",
        content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}` } }],
      },
      {
        role: "assistant",
        tool_calls: [{ id: "c1", function: { name: "get_weather", arguments: '{"city":"Paris"}' } }],
      },
      { role: "tool", tool_call_id: "c1", content: '{"sky":"clear"}' },
      { role: "user", content: "[".repeat(100_000) + "]".repeat(100_000) },
      { role: "user", content: JSON.stringify(Array.from({ length: 300 }, () => "1".repeat(300).split(""))) },
      { role: "user", content: hostile },
    ],
  });
  await expect.poll(async () => (await server.api("GET", `${gateways}/default/logs/${id}`)).status).toBe(200);
  await open("/gateways/default");
  const row = page.getByRole("region", { name: "Calls" }).getByRole("row", { name: /Title/ });
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByRole("group", { name: "Columns" }).getByLabel("Metadata").check();
  await row.getByText("team=search").waitFor();
  await page.keyboard.press("Escape");
  await row.getByRole("link").click();
  await page.getByRole("link", { name: "Open call" }).click();
  const request = page.getByRole("region", { name: "Request", exact: true });
  await request.locator(".markdown-heading").filter({ hasText: "Title" }).waitFor();
  await expect
    .poll(() => page.evaluate<number>("document.querySelector('.message-image').naturalWidth"))
    .toBe(1);
  await request.getByText("get_weather").waitFor();
  expect(await request.locator("img").count()).toBe(1);
  expect(await request.locator("a[href^='javascript']").count()).toBe(0);
  expect(await request.getByRole("link", { name: /opens far.example/ }).count()).toBe(1);
  expect(await page.evaluate("window.broken")).toBeUndefined();
  // Of 90,000 members and 100,000 levels, only some become elements.
  expect(await request.locator(".json-leaf, .json-node").count()).toBeLessThan(1000);

  // The next call that is opened cannot be read: the messages of this one must not stand below its id.
  await page.evaluate(
    `history.pushState(null, "", location.pathname.replace(${JSON.stringify(id)}, "no-such-call")); dispatchEvent(new Event("signalbox:navigated"))`,
  );
  await page.getByRole("alert").waitFor();
  expect(await page.getByText("get_weather").count()).toBe(0);
});

it("finds pages, gateways and actions from the keyboard", async () => {
  const { page, open } = dashboard;
  await open("/gateways");
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Command palette" });
  await palette.getByRole("option", { name: /^closed Gateway$/ }).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await page.keyboard.type("playground closed");
  await palette.getByRole("option").first().waitFor();
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: "closed" }).waitFor();
  expect(new URL(page.url()).pathname).toMatch(/\/gateways\/closed\/playground$/);
  const tags = page.getByRole("heading", { level: 1, name: "Tags" });
  await expect
    .poll(async () => {
      await page.keyboard.press("g");
      // It counts within 1.2 s, which a busy machine may miss.
      await page.keyboard.press("t");
      return tags.waitFor({ timeout: 5000 }).then(
        () => true,
        () => false,
      );
    })
    .toBe(true);
  await page.keyboard.press("?");
  const shortcuts = page.getByRole("dialog", { name: "Keyboard shortcuts" });
  await shortcuts.waitFor();
  await page.keyboard.press("Escape");
  await shortcuts.waitFor({ state: "detached" });
  await page.keyboard.press("Control+k");
  await palette.getByRole("combobox").waitFor();
  await page.keyboard.type("create token");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Create token" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
});

it("keeps the time range in the URL, and reads charts from the keyboard", async () => {
  const { page, open } = dashboard;
  await open("?range=1h");
  // The calls of the other tests, by model; the figures above choose what the chart shows.
  const overview = page.getByRole("region", { name: "Gateways" });
  await overview.locator("rect[data-series='echo']").first().waitFor();
  await overview.getByRole("button", { name: /^Tokens/ }).click();
  await overview.getByRole("slider", { name: /^Tokens by model/ }).waitFor();
  expect(new URL(page.url()).searchParams.get("show")).toBe("tokens");
  await page.getByRole("region", { name: "Latest calls and deliveries" }).getByText("200").first().waitFor();
  await open("/usage?range=1h");
  const calls = page.getByRole("slider", { name: "Calls per minute" });
  await calls.focus();
  await page.keyboard.press("Home");
  expect(await calls.getAttribute("aria-valuetext")).toMatch(/no data/);
  await page.keyboard.press("End");
  await page.keyboard.press("ArrowLeft");
  expect(await calls.getAttribute("aria-valuenow")).toBe("58");
  await page.getByLabel("Time range").selectOption("custom");
  await expect.poll(() => new URL(page.url()).searchParams.get("from")).toMatch(/^20.*Z$/);
  await page.getByLabel("Time range").selectOption("24h");
  await page.getByRole("slider", { name: "Calls per hour" }).waitFor();
  expect(new URL(page.url()).search).toBe("");
});

it("edits the tags of all resources that match, not only of those on the page", async () => {
  const { page, open } = dashboard;
  const items = Array.from({ length: 130 }, (_, i) => ({
    resource_type: "kv_namespace",
    resource_id: `ns-${i}`,
    tags: { site: "berlin" },
  }));
  await server.api("POST", "/accounts/default/tags/bulk", { items });
  await open(`/tags?filters=${encodeURIComponent('["site=berlin"]')}`);
  await page.getByLabel("Select all 100").check();
  await page.getByRole("button", { name: "Select all 130 that match" }).click();
  await page.getByRole("button", { name: "Edit tags (130)" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("combobox", { name: "Key" }).fill("site");
  await dialog.getByRole("combobox", { name: "Value" }).fill("paris");
  await dialog.getByRole("button", { name: "Preview" }).click();
  const apply = dialog.getByRole("button", { name: "Apply" });
  await apply.waitFor();
  // The preview is longer than the dialog; the button stays in view.
  const box = await apply.boundingBox();
  expect(box?.y ?? Infinity).toBeLessThan(page.viewportSize()?.height ?? 0);
  await apply.click();
  await dialog.waitFor({ state: "detached" });
  const { body } = await server.api("GET", "/accounts/default/tags/resources?tag=site=paris&total=exact");
  expect(body.result_info.total_count).toBe(130);
});

it("a page that does not poll goes on when the connection is back, and says so", async () => {
  const { page, open } = dashboard;
  await open("/tags");
  await page.context().setOffline(true);
  await page.getByLabel("Name contains").fill("ns-1");
  await page.getByText("Connection lost. Reconnecting…").waitFor();
  await page.getByRole("alert").waitFor();
  // The page says it for four seconds: the wait begins before.
  await Promise.all([page.getByText("Connected again").waitFor(), page.context().setOffline(false)]);
  await page.getByRole("alert").waitFor({ state: "detached" });
  await page.getByRole("link", { name: "ns-1", exact: true }).waitFor();
});

it("keeps the actions of a row in view on a phone", async () => {
  const { page, open } = dashboard;
  await page.setViewportSize({ width: 390, height: 800 });
  await server.token(["gateway.read", "gateway.edit", "tags.read", "tags.edit", "audit.read"]);
  await open("/tokens");
  const box = await page
    .getByRole("button", { name: /^Revoke/ })
    .first()
    .boundingBox();
  expect((box?.x ?? 0) + (box?.width ?? Infinity)).toBeLessThanOrEqual(390);
});
