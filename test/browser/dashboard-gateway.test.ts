/** The gateway pages, including the setup steps of section 3.1 of the contract, tested with a real client. */
import OpenAI from "openai";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";
import { seriousViolations } from "./support/serious-violations.ts";

/** Not the name of the provider. */
const MODEL = "parrot";

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

function client(gateway: string, token?: string): OpenAI {
  return new OpenAI({
    apiKey: "not-needed",
    baseURL: `${server.url}/v1/default/${gateway}/echo`,
    maxRetries: 0,
    ...(token === undefined ? {} : { defaultHeaders: { "gw-aig-authorization": `Bearer ${token}` } }),
  });
}

const complete = (openai: OpenAI, content = "Hello") =>
  openai.chat.completions.create({ model: MODEL, messages: [{ role: "user", content }] });

let tries = 0;
/** Another name for each try, so that a second one does not find what the first has made. */
const fresh = (name: string) => `${name}${++tries}`;

it("turns on authentication: a client without the token is accepted before and rejected after", async () => {
  const shop = fresh("shop");
  const { page, open, close } = await openDashboard(browser, server);
  await open("/gateways");
  await page.getByRole("button", { name: "Create gateway" }).click();
  await page.getByRole("dialog").getByLabel("Name").fill(shop);
  await page.getByRole("dialog").getByRole("button", { name: "Create gateway" }).click();

  // (1) Open the gateway settings.
  await page.getByRole("heading", { level: 1, name: shop }).waitFor();
  await page.getByText("Unauthenticated").first().waitFor();
  await complete(client(shop));

  // (2) Create a token with the Run permission. It is shown once.
  await page.getByRole("button", { name: "Create authentication token" }).click();
  const token = (await page.getByTestId("new-token").textContent()) ?? "";

  // (3) Configure the clients: the client code contains the token.
  const code = page.getByRole("region", { name: "Client code" });
  expect(await code.textContent()).toContain(`gw-aig-authorization: Bearer ${token}`);
  expect(await code.textContent()).toContain(`${server.url}/v1/default/${shop}/echo/chat/completions`);
  for (const tab of ["OpenAI (TypeScript)", "OpenAI (Python)", "Anthropic"]) {
    await page.getByRole("tab", { name: tab }).click();
    expect(await code.textContent()).toContain(token);
  }

  // (4) Turn on authentication.
  const toggle = page.getByRole("switch", { name: "Authenticated Gateway" });
  await toggle.click();
  await page.getByText("On: calls without a valid gateway token are rejected").waitFor();
  await page.getByText("Authenticated", { exact: true }).waitFor();

  await expect(complete(client(shop))).rejects.toMatchObject({ status: 401 });
  const answer = await complete(client(shop, token), "Still here");
  expect(answer.choices[0]?.message.content).toContain("Still here");

  // Turn authentication off again.
  await toggle.click();
  await page.getByText("Off: anyone who can reach the gateway URL").waitFor();
  await complete(client(shop));
  await page.reload();
  await settled(page);
  expect(await page.content()).not.toContain(token);
  await close();
});

it("shows a new call in the log without a reload, with the assembled text of its streamed response", async () => {
  const gateway = fresh("quiet");
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: gateway });
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/gateways/${gateway}/logs`);
  await page.getByText("No calls yet").waitFor();
  const stream = await client(gateway).chat.completions.create(
    { model: MODEL, stream: true, messages: [{ role: "user", content: "One two three" }] },
    { headers: { "gw-aig-metadata": '{"user":"ada"}' } },
  );
  for await (const chunk of stream) void chunk;
  const row = page.getByRole("row", { name: MODEL });
  await row.waitFor();
  await row.getByRole("link").click();
  // The call is shown beside the list; the link leads to its page.
  const panel = page.getByRole("complementary", { name: "Selected call" });
  await panel.getByRole("region", { name: "Response" }).getByText("One two three").waitFor();
  expect(new URL(page.url()).searchParams.get("call")).toContain(`${gateway}/`);
  await page.keyboard.press("Escape");
  await panel.waitFor({ state: "detached" });
  await page.keyboard.press("j");
  await page.keyboard.press("Enter");
  await panel.getByRole("link", { name: "Open call" }).click();
  await page.getByRole("heading", { level: 1, name: "Call" }).waitFor();
  const response = page.getByRole("region", { name: "Response", exact: true });
  await response.getByText("One two three").waitFor();
  await response.getByText(/Assembled from \d+ events/).waitFor();
  await page.getByRole("region", { name: "Request", exact: true }).getByText("One two three").waitFor();
  expect(await page.getByRole("region", { name: "Measurements" }).textContent()).toMatch(
    /Duration.*Input tokens\d+.*Output tokens\d+.*Cost/,
  );
  expect(await page.getByRole("region", { name: "Details" }).textContent()).toContain("Metadata: userada");
  await response.getByRole("tab", { name: "Raw" }).click();
  expect(await response.getByRole("region").textContent()).toContain("chat.completion.chunk");
  await close();
});

it("filters and searches the log", async () => {
  await complete(client("default"), "plain");
  const url = `${server.url}/v1/default/default/echo/chat/completions`;
  const refused = await fetch(url, { method: "POST", body: "not json" });
  await refused.text();
  const user = fresh("ada");
  await client("default").chat.completions.create(
    { model: MODEL, messages: [{ role: "user", content: "Hello" }] },
    { headers: { "gw-aig-metadata": JSON.stringify({ user }) } },
  );
  const { page, open, close } = await openDashboard(browser, server);
  await open("/gateways/default/logs");
  const rows = page.getByRole("region", { name: "Calls" }).locator("tbody tr");
  const total = await rows.count();
  const filters = page.getByRole("group", { name: "Filters" });
  await page.getByRole("button", { name: "+ Filter" }).click();
  await filters.getByLabel("Search metadata").fill(user);
  await expect.poll(() => rows.count()).toBe(1);
  await filters.getByLabel("Search metadata").fill("");
  await expect.poll(() => rows.count()).toBe(total);
  await filters.getByLabel("Metadata", { exact: true }).fill(`user=${user}`);
  await expect.poll(() => rows.count()).toBe(1);
  await filters.getByLabel("Metadata", { exact: true }).fill(`user=${user}x`);
  await page.getByText("No matching calls").waitFor();
  await page.getByRole("button", { name: "Remove the filter Metadata" }).click();
  await expect.poll(() => rows.count()).toBe(total);
  await page.getByRole("button", { name: "+ Filter" }).click();
  await filters.getByLabel("Model").fill("no-such-model");
  await page.getByText("No matching calls").waitFor();
  await filters.getByLabel("Model").fill(MODEL.slice(0, 3));
  await filters.getByLabel("Status").selectOption("success");
  await expect.poll(() => rows.count()).toBeGreaterThan(0);
  expect(new URL(page.url()).searchParams.get("outcome")).toBe("success");
  await page.keyboard.press("Escape");
  await filters.waitFor({ state: "hidden" });

  // A part of the histogram is a time range; "back" returns to the one before.
  const histogram = page.getByRole("slider", { name: /^Calls/ });
  await histogram.focus();
  await page.keyboard.press("End");
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Enter");
  await expect.poll(() => new URL(page.url()).searchParams.get("range")).toBe("custom");
  await expect.poll(() => rows.count()).toBeGreaterThan(0);
  await page.goBack();
  await expect.poll(() => new URL(page.url()).searchParams.get("range")).toBeNull();

  // The columns are those of this browser.
  await page.getByRole("button", { name: "Columns" }).click();
  await page.getByLabel("Cost").uncheck();
  await page.getByRole("columnheader", { name: "Cost" }).waitFor({ state: "detached" });
  await page.reload();
  await settled(page);
  await page.getByRole("columnheader", { name: "Tokens" }).waitFor();
  expect(await page.getByRole("columnheader", { name: "Cost" }).count()).toBe(0);
  await close();
});

it("shows usage over time by provider and model, and usage by tag", async () => {
  await server.api("PUT", "/accounts/default/tags", {
    resource_type: "ai_gateway",
    resource_id: "default",
    tags: { team: "platform" },
  });
  const { page, open, close } = await openDashboard(browser, server);
  await open("/gateways/default/analytics");
  for (const title of ["Calls", "Errors", "Tokens", "Cost", "Latency"])
    await page.getByRole("slider", { name: title }).waitFor();
  const calls = page.locator("figure").filter({ has: page.getByRole("heading", { name: "Calls" }) });
  expect(await calls.locator("rect[class^='color-']").count()).toBeGreaterThan(0);
  await calls.getByText("Data", { exact: true }).click();
  expect(await calls.locator("tbody td").last().textContent()).toMatch(/^\d+$/);
  // A legend entry isolates its series in all charts, a click on a bar opens its calls.
  await page.getByLabel("Group by").selectOption("model");
  await expect.poll(() => new URL(page.url()).searchParams.get("series")).toBe("model");
  // The bars of the providers stay until the others are there.
  await calls.locator(`rect[data-series="${MODEL}"]`).last().click();
  await page.getByRole("region", { name: "Calls", exact: true }).locator("tbody tr").first().waitFor();
  const opened = new URL(page.url());
  expect([opened.pathname.split("/").at(-1), opened.searchParams.get("range")]).toEqual([
    "default",
    "custom",
  ]);
  expect(opened.searchParams.get("model")).toBe(MODEL);

  await open("/usage");
  const byTag = page.getByRole("region", { name: "Usage by tag", exact: true });
  expect(await byTag.getByRole("row", { name: /platform/ }).textContent()).toMatch(/platform\d/);
  await close();
});

it("saves the settings of a gateway and deletes a gateway", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  // It may be there from a first try.
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "temporary" });
  await open("/gateways/temporary/settings");
  await page.getByLabel("Rate limit (calls)").fill("3");
  await page.getByLabel("Cost that callers state").selectOption("Counts in limits");
  await page.getByRole("button", { name: "Save changes" }).click();
  await expect
    .poll(
      async () => (await server.api("GET", "/accounts/default/ai-gateway/gateways/temporary")).body.result,
    )
    .toMatchObject({ rate_limiting_limit: 3, rate_limiting_interval: 60, trust_custom_cost: true });
  await page.getByRole("button", { name: "Delete gateway" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
  await page.getByRole("heading", { level: 1, name: "Gateways" }).waitFor();
  await settled(page);
  expect(await page.getByRole("link", { name: "temporary" }).count()).toBe(0);
  await close();
});

it("writes a guardrail, tries it on a text and on stored calls, and shows what it caught", async () => {
  const shop = fresh("guarded");
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: shop });
  await complete(client(shop), "Before: write to ada@example.org");
  const { page, open, close } = await openDashboard(browser, server);
  await open(`/guardrails?gateway=${shop}`);
  await page.getByText("No guardrails here").waitFor();
  await page.getByText("Nothing was found").waitFor();
  await page.getByRole("button", { name: "Add guardrail" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("Name").fill("people");
  await dialog.getByLabel("Prompts, with the results of tools").check();
  await dialog.getByLabel("Answers, with the arguments of tools").uncheck();
  await dialog.getByText("Exceptions, failures and logs").click();
  await dialog.getByLabel("Allowed texts").fill("*@house.example");
  await dialog.getByLabel("Stored calls hold").selectOption("a mask in its place");

  await dialog.getByLabel("Text", { exact: true }).fill("To bob@example.org and c@house.example");
  await dialog.getByRole("button", { name: "Try the text" }).click();
  await dialog.getByText("To <EMAIL_1> and c@house.example").waitFor();
  await dialog.getByRole("tab", { name: "On stored calls" }).click();
  await dialog.getByLabel("With the text").fill("before");
  await dialog.getByLabel("With the text").press("Enter");
  await dialog
    .getByText(/^Calls searched: 1\. Would have been blocked: 0, masked: 1, flagged: 0\./)
    .waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Add guardrail" }).click();
  await page.getByRole("row", { name: /^people Personal data/ }).waitFor();

  const answer = await complete(client(shop), "After: write to ada@example.org");
  expect(answer.choices[0]?.message.content).toContain("ada@example.org");
  const found = page.getByRole("region", { name: "Calls with findings" });
  await expect
    .poll(async () => {
      await page.reload();
      await page.getByRole("heading", { name: "What was caught" }).waitFor();
      await settled(page);
      return found.count();
    })
    .toBe(1);
  expect(await page.getByRole("region", { name: "Findings by rule" }).textContent()).toContain("EMAIL");
  await found.getByRole("link").click();
  const decisions = page.getByRole("region", { name: "Guardrails", exact: true }).last();
  await decisions.getByText("of gateway").waitFor();
  expect(await decisions.textContent()).toContain("EMAIL");
  expect(await decisions.textContent()).toContain("the prompt");
  await page.getByText("<EMAIL_1>").first().waitFor();
  expect(await page.content()).not.toContain("ada@example.org");

  await open(`/guardrails?gateway=${shop}`);
  await page.getByRole("button", { name: "Edit people" }).click();
  await dialog.getByLabel("What follows").selectOption("Block: the call is refused");
  await dialog.getByRole("button", { name: "Save guardrail" }).click();
  await dialog.waitFor({ state: "detached" });
  await expect(complete(client(shop), "write to ada@example.org")).rejects.toMatchObject({ status: 424 });
  await page.getByRole("button", { name: "Remove people" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByText("No guardrails here").waitFor();
  const { body } = await server.api("GET", "/accounts/default/audit_logs?limit=20");
  expect(JSON.stringify(body)).toContain("guardrails");
  await close();
});
