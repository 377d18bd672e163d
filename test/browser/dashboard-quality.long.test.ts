/** Requirements for every page: accessibility in both themes, phone layout, keyboard operation, slow responses and errors. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard, scrollWidth, settled } from "./support/dashboard.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";
import { seriousViolations } from "./support/serious-violations.ts";

let server: TestServer;
let browser: Browser;
let callId = "";
let deliveryId = "";
let routeId = "";
let tokenId = "";

beforeAll(async () => {
  server = await startTestServer({ environment: { GITHUB_WEBHOOK_SECRET: "a-secret-for-the-test" } });
  browser = await launchBrowser();
  for (const stream of [true, false]) {
    const answer = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", "gw-aig-metadata": '{"user":"ada"}' },
      body: JSON.stringify({ model: "echo", stream, messages: [{ role: "user", content: "Hello" }] }),
    });
    await answer.text();
  }
  await server.token(["tags.read", "gateway.run"]);
  ({ routeId, tokenId } = await createKeysAndRoutes());
  await server.api("PUT", "/accounts/default/tags", {
    resource_type: "ai_gateway",
    resource_id: "default",
    tags: { env: "dev", team: "platform" },
  });
  await server.api("POST", "/accounts/default/webhooks/sources/github/test", { entity: "acme/widgets" });
  callId = (await server.api("GET", "/accounts/default/ai-gateway/gateways/default/logs")).body.result[0].id;
  deliveryId = (await server.api("GET", "/accounts/default/webhooks/deliveries")).body.result[0].id;
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

/** One of everything that the pages of keys, limits and routes show. */
async function createKeysAndRoutes(): Promise<{ routeId: string; tokenId: string }> {
  const gateways = "/accounts/default/ai-gateway";
  const rules = [
    { id: "all", limitType: "cost", limit: 10, window: null },
    {
      id: "team",
      limitType: "requests",
      limit: 50,
      window: 3600,
      model: { mode: "filter", values: ["gpt-5*"] },
    },
  ];
  const created = async (method: string, path: string, body: object) =>
    (await server.api(method, path, body)).body.result as { id: string };
  await created("PUT", `${gateways}/limits`, { rules });
  await created("PUT", `${gateways}/gateways/default`, { spend_limits: { rules } });
  await created("PUT", `${gateways}/prices`, { prices: { openai: { "*": { in: 1, out: 2 } } } });
  for (const owner of [gateways, `${gateways}/gateways/default`])
    for (const weight of [1, 3])
      await created("POST", `${owner}/provider_configs`, {
        provider_slug: "openai",
        secret: `sk-${weight}-abcd`,
        weight,
      });
  const custom = { slug: "inhouse", name: "In-house", base_url: "https://models.example.com" };
  await created("POST", `${gateways}/custom-providers`, custom);
  const model = (id: string, fallback?: string) => ({
    id,
    type: "model",
    properties: { provider: "echo", model: id },
    outputs: {
      success: { elementId: "end" },
      ...(fallback === undefined ? {} : { fallback: { elementId: fallback } }),
    },
  });
  const elements = [
    { id: "start", type: "start", outputs: { next: { elementId: "plan" } } },
    {
      id: "plan",
      type: "conditional",
      properties: { conditions: { "metadata.plan": { $eq: "pro" } } },
      outputs: { true: { elementId: "limit" }, false: { elementId: "small" } },
    },
    {
      id: "limit",
      type: "rate",
      properties: { limitType: "count", key: "metadata.user_id", limit: 100, window: 3600 },
      outputs: { success: { elementId: "large" }, fallback: { elementId: "small" } },
    },
    model("large", "small"),
    model("small"),
    { id: "end", type: "end" },
  ];
  const route = await created("POST", `${gateways}/gateways/default/routes`, { name: "support", elements });
  const token = await created("POST", "/accounts/default/tokens", {
    name: "search-team",
    permissions: ["gateway.run"],
    owner: "ada@example.com",
    budgets: [
      { limit: 50, window: "month", timezone: "Europe/Berlin" },
      { limit: 5, window: null },
    ],
    rate_limits: [{ type: "requests", limit: 60, interval: 60 }],
    models: ["openai/gpt-5*"],
  });
  return { routeId: route.id, tokenId: token.id };
}

const instance = "/agents/webhook-agent/acme-widgets";
const PAGES: readonly (() => string)[] = [
  () => "",
  () => "/gateways",
  () => "/usage",
  () => "/logs",
  () => `/logs?call=default/${callId}`,
  () => "/users",
  () => "/users/ada",
  () => "/sessions?key=user",
  () => "/sessions/ada?key=user",
  () => "/audit",
  () => "/alerts",
  () => "/limits",
  () => "/guardrails",
  () => "/provider-keys",
  () => "/prices",
  () => "/providers",
  () => "/gateways/default",
  () => "/gateways/default/settings",
  () => "/gateways/default/playground",
  () => "/gateways/default/limits",
  () => "/gateways/default/provider-keys",
  () => "/gateways/default/routes",
  () => `/gateways/default/routes/${routeId}`,
  () => `/gateways/default/logs/${callId}`,
  () => "/gateways/default/analytics",
  () => "/agents",
  () => "/problems",
  () => "/agents/webhook-agent",
  () => instance,
  () => `${instance}/events`,
  () => `${instance}/queue`,
  () => `${instance}/dead-letters`,
  () => `${instance}/schedules`,
  () => `${instance}/connections`,
  () => `${instance}/console`,
  () => `${instance}/sql`,
  () => "/webhooks",
  () => "/webhooks/sources/github",
  () => "/webhooks/sources/stripe",
  () => "/webhooks/deliveries",
  () => `/webhooks/deliveries/${deliveryId}`,
  () => "/tags",
  () => "/tags/keys",
  () => "/tags/changes",
  () => "/tags/jobs",
  () => "/tags/resources/ai_gateway/default",
  () => "/tokens",
  () => `/tokens/${tokenId}`,
  () => "/cluster",
  () => "/no-such-page",
];

/** For manual inspection; the folder is ignored by git. On request only, with `DASHBOARD_SCREENSHOTS=1`: nothing is asserted about them. */
async function keepScreenshot(
  page: Page,
  kind: "light" | "phone",
  name: string,
  fullPage = false,
): Promise<void> {
  if (process.env["DASHBOARD_SCREENSHOTS"] === undefined) return;
  const folder = join(import.meta.dirname, "../../test-results/dashboard", kind);
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage });
}

function screenshotName(path: string): string {
  return path === "" ? "overview" : path.slice(1).replaceAll("/", "-");
}

const DESKTOP = { width: 1280, height: 720 };
const PHONE = { width: 375, height: 800 };

/** One look at a page for both themes: to load a page takes longer than to check it. */
async function violationsInBothThemes(page: Page): Promise<string[]> {
  const violations = await seriousViolations(page);
  await page.emulateMedia({ colorScheme: "dark" });
  // The themes differ only in colors.
  const inDark = await seriousViolations(page, { runOnly: ["color-contrast"] });
  await page.emulateMedia({ colorScheme: "light" });
  return [...violations, ...inDark.map((violation) => `dark: ${violation}`)];
}

it("axe finds no serious violation on any page in both themes, and no page scrolls horizontally on a phone", async () => {
  const { page, open, close } = await openDashboard(browser, server, { viewport: DESKTOP });
  const found: Record<string, string[]> = {};
  for (const path of PAGES) {
    await open(path());
    const name = screenshotName(path());
    const violations = await violationsInBothThemes(page);
    await keepScreenshot(page, "light", name);
    await page.setViewportSize(PHONE);
    const width = await scrollWidth(page, PHONE.width);
    if (width > PHONE.width) violations.push(`${width} pixels wide on a phone`);
    await keepScreenshot(page, "phone", name);
    await page.setViewportSize(DESKTOP);
    if (violations.length > 0) found[path()] = violations;
  }
  expect(found).toEqual({});
  await close();
});

it("axe finds no serious violation in dialogs and on the login page, in both themes", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tokens");
  await page.getByRole("button", { name: "Create token" }).click();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await page.getByText("Budgets, rate limits, models and owner").click();
  await page.getByRole("button", { name: "Add budget" }).click();
  expect(await violationsInBothThemes(page)).toEqual([]);
  for (const [path, button] of [
    ["/gateways/default/limits", "Add limit"],
    ["/provider-keys", "Add key"],
  ] as const) {
    await open(path);
    await page.getByRole("button", { name: button }).click();
    expect(await violationsInBothThemes(page)).toEqual([]);
  }
  await open(`/gateways/default/routes/${routeId}`);
  await page.getByRole("button", { name: /^limit / }).click();
  await page.getByRole("button", { name: "Try" }).click();
  await page.getByTestId("way").waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await keepScreenshot(page, "light", "route-tried", true);
  await open("/tags/resources/ai_gateway/default");
  await page.getByRole("button", { name: "Edit tags" }).click();
  await page.getByRole("combobox", { name: "Value" }).first().fill("prod");
  await page.getByRole("button", { name: "Preview" }).click();
  await page.getByText("Preview of changes").waitFor();
  expect(await violationsInBothThemes(page)).toEqual([]);
  await close();
  const login = await openPage(browser);
  await login.page.goto(`${server.url}/dashboard/login?expired`);
  await login.page.getByRole("heading", { name: "Log in" }).waitFor();
  expect(await violationsInBothThemes(login.page)).toEqual([]);
  await login.close();
});

it("has a menu on a phone that opens and closes", async () => {
  const { page, close } = await openDashboard(browser, server, { viewport: PHONE, hasTouch: true });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.getByRole("link", { name: "Tags" }).click();
  await page.getByRole("heading", { level: 1, name: "Tags" }).waitFor();
  await page.getByRole("link", { name: "Gateways" }).waitFor({ state: "hidden" });
  await close();
});

it("supports the keyboard: skip link, Escape closes a dialog, the focus returns to the button", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tokens");
  await page.keyboard.press("Tab");
  const focused = () => page.evaluate<string>("document.activeElement?.textContent ?? ''");
  expect(await focused()).toBe("Skip to content");
  await page.keyboard.press("Enter");
  await page.keyboard.press("Tab");
  expect(await focused()).toBe("Create token");
  await page.keyboard.press("Enter");
  await page.getByRole("dialog").waitFor();
  // The first field has the focus, not the button that closes.
  await expect.poll(() => page.evaluate<string>("document.activeElement.tagName")).toBe("INPUT");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await expect.poll(focused).toBe("Create token");
  await close();
});

it("shows the gateways while the usage request is still pending", async () => {
  const { page, close } = await openDashboard(browser, server);
  let release: () => void = () => undefined;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route("**/ai-gateway/usage?*", async (route) => {
    await held;
    await route.continue();
  });
  const navigation = page.getByRole("navigation", { name: "Main" });
  await navigation.getByRole("link", { name: "Gateways" }).click();
  await page.getByRole("region", { name: "Gateways" }).getByRole("link", { name: "default" }).waitFor();
  release();
  // A request that is passed on while its page closes would fail outside of the test.
  await page.unrouteAll({ behavior: "wait" });
  await close();
});

it("shows an error when the server fails, and recovers with Try again", async () => {
  const { page, close } = await openDashboard(browser, server, { expectedProblems: /status of 500/ });
  let isBroken = true;
  await page.route("**/accounts/default/tokens", async (route) => {
    if (!isBroken) return route.continue();
    return route.fulfill({
      status: 500,
      json: {
        success: false,
        errors: [{ code: 1000, message: "Internal error" }],
        messages: [],
        result: null,
      },
    });
  });
  await page.getByRole("link", { name: "Tokens" }).click();
  const alert = page.getByRole("alert");
  await alert.filter({ hasText: "Internal error (code 1000)" }).waitFor();
  isBroken = false;
  await alert.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("region", { name: "Tokens" }).waitFor();
  await settled(page);
  await page.unrouteAll({ behavior: "wait" });
  await close();
});
