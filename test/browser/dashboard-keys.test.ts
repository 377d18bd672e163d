/** Virtual keys, provider keys and limits in the dashboard, tested with a real client against a provider of our own. */
import OpenAI from "openai";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

let provider: ProviderPeer;
let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  provider = await startProvider(openAi);
  server = await startTestServer({ file: { providers: { openai: { baseUrl: provider.url } } } });
  browser = await launchBrowser();
  await setGateway(server, { authentication: true });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
  await provider.close();
});

/** The virtual key is the only credential: the service adds the provider's key. */
const complete = (token: string) =>
  new OpenAI({
    apiKey: token,
    baseURL: `${server.url}/v1/default/default/openai`,
    maxRetries: 0,
  }).chat.completions.create({
    model: "gpt-4o-mini",
    max_tokens: 50,
    messages: [{ role: "user", content: "Hello" }],
  });

let tries = 0;
/** Another name for each try, so that a second one does not find what the first has made. */
const fresh = (name: string) => `${name}${++tries}`;

it("adds provider keys as a pool: a wrong one becomes invalid, the right one is used, none is shown", async () => {
  // Those of a first try.
  const path = "/accounts/default/ai-gateway/provider_configs";
  const { body } = await server.api("GET", path);
  for (const { id } of body.result as { id: string }[]) await server.api("DELETE", `${path}/${id}`);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/provider-keys");
  await page.getByText("No provider keys here").waitFor();
  const add = async (secret: string, weight: string) => {
    await page.getByRole("button", { name: "Add key" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Provider").fill("openai");
    await dialog.getByLabel("Key", { exact: true }).fill(secret);
    await dialog.getByLabel("Weight").fill(weight);
    await dialog.getByRole("button", { name: "Add key" }).click();
    await dialog.waitFor({ state: "detached" });
  };
  await add("sk-a-wrong-key-9999", "1000");
  await add(OPENAI_KEY, "1");
  const wrong = page.getByRole("row", { name: /9999/ });
  const right = page.getByRole("row", { name: /openai/ }).filter({ hasNotText: "9999" });
  await wrong.getByText("pool, weight 1000 (99.9%)").waitFor();
  await right.getByText("active").waitFor();

  // One of a thousand calls gets the right key at once: of five, one surely tries the wrong one.
  const token = await server.token(["gateway.run"]);
  for (let i = 0; i < 5; i++) await complete(token);
  expect(provider.requests.at(-1)?.headers.authorization).toBe(`Bearer ${OPENAI_KEY}`);
  await page.reload();
  await wrong.getByText("invalid").waitFor();
  await right.getByText("active").waitFor();

  await wrong.getByRole("button", { name: "Disable" }).click();
  await wrong.getByText("disabled").waitFor();
  await right.getByRole("button", { name: "Edit" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByLabel("Key", { exact: true }).inputValue()).toBe("");
  await dialog.getByLabel("Weight").fill("7");
  await dialog.getByRole("button", { name: "Save key" }).click();
  await right.getByText("pool, weight 7").waitFor();
  await complete(token);
  await wrong.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await wrong.waitFor({ state: "detached" });
  const content = await page.content();
  expect(content).not.toContain(OPENAI_KEY);
  expect(content).not.toContain("sk-a-wrong");
  await close();
});

it("creates a key with prepaid credit, sees it refused over its budget, and adds credit", async () => {
  const name = fresh("search-team");
  const { page, open, close } = await openDashboard(browser, server);
  await open("/tokens");
  await page.getByRole("button", { name: "Create token" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(name);
  await dialog.getByRole("checkbox", { name: /gateway\.run/ }).check();
  await dialog.getByText("Budgets, rate limits, models and owner").click();
  await dialog.getByRole("button", { name: "Add budget" }).click();
  await dialog.getByLabel("US dollars").fill("0.000001");
  await dialog.getByLabel("Period").selectOption("credit");
  await dialog.getByRole("button", { name: "Add rate limit" }).click();
  await dialog.getByLabel("Limit", { exact: true }).fill("60");
  await dialog.getByLabel("Models").fill("openai/gpt-4o*\n!*pro*");
  await dialog.getByLabel("Owner").fill("ada@example.com");
  await dialog.getByLabel("Metadata").fill("team=search\nlevel=5");
  await dialog.getByRole("button", { name: "Create token" }).click();
  const token = (await dialog.getByTestId("new-token").textContent()) ?? "";
  await dialog.getByRole("button", { name: "Done" }).click();

  const row = page.getByRole("row", { name });
  await row.getByText("ada@example.com").waitFor();
  await row.getByText("of $0.0000010 left").waitFor();
  await expect(complete(token)).rejects.toMatchObject({ status: 429 });

  await row.getByRole("link", { name }).click();
  await page.getByRole("heading", { level: 1, name }).waitFor();
  await page.getByRole("button", { name: "Add credit" }).click();
  await page.getByRole("dialog").getByLabel("Amount (US dollars)").fill("5");
  await page.getByRole("dialog").getByRole("button", { name: "Add credit" }).click();
  const left = page.getByRole("region", { name: "What is left" });
  await left.getByText("$5.00 of $5.00 left").waitFor();
  await complete(token);
  await page.reload();
  await settled(page);
  const usage = page.getByRole("region", { name: "Usage", exact: true });
  await usage.getByText("gpt-4o-mini").waitFor();
  expect(await left.getByRole("row", { name: /total/ }).textContent()).toMatch(/left\$0\.0000/);
  const { body } = await server.api("GET", "/accounts/default/tokens");
  expect((body.result as { name: string }[]).find((token) => token.name === name)).toMatchObject({
    owner: "ada@example.com",
    models: ["openai/gpt-4o*", "!*pro*"],
    metadata: { team: "search", level: 5 },
    rate_limits: [{ type: "requests", limit: 60, interval: 60 }],
  });
  await close();
});

it("changes, rotates and disables a key", async () => {
  const made = await server.api("POST", "/accounts/default/tokens", {
    name: "rotated",
    permissions: ["gateway.run"],
    models: ["openai/*"],
  });
  const { id, token: old } = made.body.result as { id: string; token: string };
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/tokens/${id}`);
  await page.getByText("This token has no budgets and no rate limits.").waitFor();
  await page.getByRole("button", { name: "Add budget", exact: true }).click();
  await page.getByLabel("US dollars").fill("10");
  await page.getByLabel("Models").fill("anthropic/*");
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("$10.00 of $10.00 left").waitFor();
  await expect(complete(old)).rejects.toMatchObject({ status: 403 });
  await page.getByLabel("Models").fill("");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect.poll(() => complete(old).then(() => "answered", String)).toBe("answered");

  await page.getByRole("button", { name: "Rotate" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("The old text stays valid").selectOption("3600");
  await dialog.getByRole("button", { name: "Rotate" }).click();
  const fresh = (await dialog.getByTestId("new-token").textContent()) ?? "";
  await dialog.getByRole("button", { name: "Done" }).click();
  await complete(old);
  await complete(fresh);
  await page.getByText("Old text valid until").waitFor();

  await page.getByRole("button", { name: "Disable" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Disable" }).click();
  await page.getByRole("button", { name: "Enable" }).waitFor();
  await expect(complete(fresh)).rejects.toMatchObject({ status: 401 });
  await page.getByRole("button", { name: "Enable" }).click();
  await page.getByRole("button", { name: "Disable" }).waitFor();
  await complete(fresh);
  expect(await page.content()).not.toContain(fresh);
  await close();
});

it("keeps credit that was added while the form was open", async () => {
  const made = await server.api("POST", "/accounts/default/tokens", {
    name: "topped up",
    permissions: ["gateway.run"],
    budgets: [
      { limit: 5, window: null },
      { limit: 1, window: "day" },
    ],
  });
  const { id } = made.body.result as { id: string };
  const path = `/accounts/default/tokens/${id}`;
  const limits = async () =>
    ((await server.api("GET", path)).body.result as { budgets: { limit: number }[] }).budgets.map(
      ({ limit }) => limit,
    );
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/tokens/${id}`);
  const dollars = page.getByLabel("US dollars");
  await dollars.nth(1).fill("2");
  await server.api("POST", `${path}/credit`, { amount: 20 });
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect.poll(limits).toEqual([25, 2]);

  await expect.poll(() => dollars.nth(0).inputValue()).toBe("25");
  await dollars.nth(0).fill("26");
  await server.api("POST", `${path}/credit`, { amount: 20 });
  await page.getByRole("button", { name: "Save changes" }).click();
  await page.getByText("The budget was changed meanwhile").waitFor();
  expect(await limits()).toEqual([45, 2]);
  await close();
});

it("sets a limit of a gateway, sees calls refused and what is left, and removes it", async () => {
  // Without the limit of a first try, which counts under another name.
  await setGateway(server, { authentication: true, spend_limits: null });
  const token = await server.token(["gateway.run"]);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/gateways/default/limits");
  await page.getByRole("button", { name: "Add limit" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill(fresh("two"));
  await dialog.getByLabel("Counts").selectOption("requests");
  await dialog.getByLabel("Limit (requests)").fill("2");
  await dialog.getByLabel("Period").selectOption("month");
  await dialog.getByLabel("Models").fill("gpt-4o*");
  await dialog.getByRole("button", { name: "Add limit" }).click();
  const limits = page.getByRole("region", { name: "Limits", exact: true });
  await limits.getByText("2 requests per month").waitFor();
  await limits.getByText("models gpt-4o*").waitFor();
  await complete(token);
  await complete(token);
  await expect(complete(token)).rejects.toMatchObject({ status: 429 });
  await page.reload();
  await page.getByText("0 of 2 left").waitFor();

  await limits.getByRole("button", { name: "Edit" }).click();
  await dialog.getByLabel("Limit (requests)").fill("3");
  await dialog.getByRole("button", { name: "Save limit" }).click();
  await page.getByText("1 of 3 left").waitFor();
  await complete(token);
  await page.getByLabel("Under a limit on cost").selectOption("allow");
  await page.getByRole("button", { name: "Save", exact: true }).click();
  const settings = async () =>
    (await server.api("GET", "/accounts/default/ai-gateway/gateways/default")).body.result.spend_limits;
  await expect.poll(async () => (await settings()).unknown_price).toBe("allow");
  await limits.getByRole("button", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("No limits. Calls are not limited here.").waitFor();
  await complete(token);
  await close();
});
