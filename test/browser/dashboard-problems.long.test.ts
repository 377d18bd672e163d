/** The pages that show what is wrong: overview, problems, a busy instance, failed and rejected deliveries; and what is done about it. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { openDashboard, settled } from "./support/dashboard.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";
import { seriousViolations } from "./support/serious-violations.ts";

const GATE = Symbol.for("signalbox.test.gate");
const FIXED = Symbol.for("signalbox.test.fixed");
const world = globalThis as unknown as Record<symbol, unknown>;
const INSTANCES = "/accounts/default/agents/ticket-agent/instances";

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  server = await startTestServer({
    environment: { GITHUB_WEBHOOK_SECRET: "a-secret-for-the-test" },
    file: {
      agents: { modules: [join(import.meta.dirname, "../fixtures/ticket-agent.ts")] },
      webhooks: { sources: { github: { agent: "ticket-agent" } } },
    },
  });
  browser = await launchBrowser();
  for (let i = 0; i < 3; i++) await gatewayCall();
  await server.api("PUT", "/accounts/default/ai-gateway/limits", {
    // A fixed window ends at the full hour, and the limit would be unused again.
    rules: [{ id: "few", limitType: "requests", limit: 1, window: 3600, technique: "sliding" }],
  });
  await gatewayCall();
  await rpc("ticket-1", "enqueue", ["broken-1", "fine", "broken-2"]);
  await rpc("ticket-2", "later", ["broken-3"]);
  await fetch(`${server.url}/webhooks/github`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
    body: '{"repository":{"full_name":"acme/forged"}}',
  });
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

async function gatewayCall(): Promise<void> {
  const answer = await fetch(`${server.url}/v1/default/default/echo/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: "echo", messages: [{ role: "user", content: "Hello" }] }),
  });
  await answer.text();
}

async function rpc(name: string, method: string, args: unknown[]): Promise<void> {
  const { status } = await server.api("POST", `/agents/ticket-agent/${name}/rpc/${method}`, args);
  expect(status).toBe(200);
}

const instance = async (name: string) => (await server.api("GET", `${INSTANCES}/${name}`)).body.result;

/** Logs in with a token of these permissions. The page fails if any request is refused. */
async function openWithToken(token: string): Promise<{ page: Page; close: () => Promise<void> }> {
  const { page, problems, close } = await openPage(browser);
  await page.goto(`${server.url}/dashboard/`);
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.getByTestId("verdict").waitFor();
  await settled(page);
  return {
    page,
    async close() {
      expect(problems).toEqual([]);
      await close();
    },
  };
}

it("the overview names what is wrong, with links to the pages that list it", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  const verdict = page.getByTestId("verdict");
  await expect
    .poll(async () => {
      await open("");
      return verdict.textContent();
    })
    .toMatch(/2 dead letters in one instance.*1 item retrying in one instance/s);
  expect(await verdict.textContent()).toContain("1 limit used up");
  await page.getByRole("region", { name: "Limits" }).getByRole("link", { name: "Account" }).waitFor();
  await page.getByRole("region", { name: "Nodes" }).getByText("up", { exact: true }).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await verdict.getByRole("link", { name: "2 dead letters in one instance" }).click();
  const rows = page.getByRole("region", { name: "Instances" }).locator("tbody tr");
  await expect.poll(() => rows.count()).toBe(1);
  expect(await rows.first().textContent()).toMatch(/ticket-1.*Error: cannot work on broken-[12]/s);
  expect(await seriousViolations(page)).toEqual([]);
  await close();
});

it("the list of agents shows the problems of each, and asks once for all of them", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  // The overview asks again and again, too.
  await page.goto("about:blank");
  const asked = new Set<string>();
  page.on("request", (request) => {
    if (request.url().includes("/agents/problems")) asked.add(request.url());
  });
  await open("/agents");
  const rows = page.getByRole("region", { name: "Agents" }).locator("tbody tr");
  const problems = rows.filter({ hasText: "TicketAgent" }).getByRole("link", { name: /dead letters/ });
  expect(await problems.textContent()).toMatch(/^2 dead letters1 retrying/);
  await rows.filter({ hasText: "WebhookAgent" }).getByText("none", { exact: true }).first().waitFor();
  expect(asked.size).toBe(1);
  await problems.click();
  await page.getByRole("region", { name: "Instances" }).getByText("ticket-1").first().waitFor();
  await close();
});

it("a token sees only the parts of the overview that it may read", async () => {
  const ofAgents = await openWithToken(await server.token(["agents.read"]));
  const titles = (page: Page) => page.locator(".overview-panel h2").allTextContents();
  expect(await titles(ofAgents.page)).toEqual(["Instances with problems"]);
  expect(await ofAgents.page.getByRole("region", { name: "Gateways" }).count()).toBe(0);
  // None of the first steps is one that this token may take.
  expect(await ofAgents.page.getByRole("region", { name: "First steps" }).count()).toBe(0);
  await ofAgents.close();
  const ofGateway = await openWithToken(await server.token(["gateway.read"], { gateway_id: "default" }));
  expect(await titles(ofGateway.page)).toEqual([
    "Top by cost",
    "Slowest models",
    "Errors",
    "Latest calls",
    "Limits",
  ]);
  const figures = ofGateway.page.getByRole("region", { name: "Gateways" });
  await figures.getByRole("button", { name: /^Calls/ }).waitFor();
  for (const by of ["Users", "Tokens"]) {
    await ofGateway.page.getByRole("tab", { name: by }).click();
    await settled(ofGateway.page);
  }
  await ofGateway.close();
});

it("a test event of a chosen type fails with the handler's error, and failed deliveries are replayed together", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks/sources/github");
  await page.getByRole("button", { name: "Send test event" }).click();
  const dialog = page.getByRole("dialog");
  expect(await dialog.getByLabel("Entity").inputValue()).toBe("acme/widgets");
  await dialog.getByLabel("Payload").fill('{"issue": {');
  await dialog.getByText(/Not valid JSON/).waitFor();
  expect(await dialog.getByRole("button", { name: "Send", exact: true }).isDisabled()).toBe(true);
  await dialog
    .getByLabel("Payload")
    .fill('{"repository":{"full_name":"acme/widgets"},"issue":{"title":"Hot"}}');
  await dialog.getByLabel("Event type").fill("issues");
  await dialog.getByRole("button", { name: "Add header" }).click();
  await dialog.getByLabel("Name").fill("x-trace");
  await dialog.getByLabel("Value").fill("t-1");
  expect(await seriousViolations(page)).toEqual([]);
  await dialog.getByRole("button", { name: "Send", exact: true }).click();
  const response = page.getByTestId("test-response");
  await response.getByText("Error: issue tracker down", { exact: true }).click();
  await response.getByText(/ticket-agent\.ts/).waitFor();
  await response.getByRole("link", { name: "Open the instance acme-widgets" }).waitFor();
  await response.getByRole("link", { name: "Open the delivery" }).click();
  await page.getByTestId("why").getByText("issue tracker down").first().waitFor();
  await page.getByText("x-trace: t-1").waitFor();

  await open("/webhooks/deliveries?status=failing");
  await page.getByRole("row", { name: /issue tracker down/ }).waitFor();
  const replayAll = async () => {
    await page.getByRole("button", { name: "Replay failed" }).click();
    await dialog.getByRole("button", { name: "Replay" }).click();
    return page.getByTestId("bulk-report");
  };
  await (await replayAll()).getByText(/0 deliveries replayed, 1 failed again\./).waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  world[FIXED] = Promise.resolve();
  await (await replayAll()).getByText(/1 deliveries replayed\./).waitFor();
  await dialog.getByRole("button", { name: "Close" }).last().click();
  await page.getByText("No matching deliveries").waitFor();
  await close();
});

it("a rejected delivery shows what was received and what is expected", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks/deliveries?status=rejected");
  await page
    .getByRole("row", { name: /does not match/ })
    .getByRole("link")
    .first()
    .click();
  const request = page.getByRole("region", { name: "Request" });
  await request.getByText("127.0.0.1").waitFor();
  await request.getByText(/x-hub-signature-256: sha256=0000/).waitFor();
  await request.getByText(/acme\/forged/).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  await close();
});

it("a busy instance is shown at once, with what runs", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  const gate = Promise.withResolvers<void>();
  world[GATE] = gate.promise;
  const held = rpc("ticket-3", "hold", []);
  await expect.poll(async () => (await instance("ticket-3")).busy_since).not.toBeNull();
  await open("/agents/ticket-agent/ticket-3");
  await page.getByTestId("busy").getByText("hold").waitFor();
  await page.getByRole("link", { name: "Queue (0)" }).waitFor();
  expect(await seriousViolations(page)).toEqual([]);
  gate.resolve();
  await held;
  await page.getByTestId("busy").waitFor({ state: "detached" });
  await close();
});

it("looking at an instance leaves no trace in it", async () => {
  await rpc("ticket-4", "enqueue", []);
  const { page, open, close } = await openDashboard(browser, server);
  for (const tab of ["", "/console", "/events", "/connections"])
    await open(`/agents/ticket-agent/ticket-4${tab}`);
  await page.getByText("No connections").waitFor();
  const { body } = await server.api("GET", `${INSTANCES}/ticket-4/events`);
  expect((body.result as { type: string }[]).filter(({ type }) => /connect/.test(type))).toEqual([]);
  await close();
});

it("work of an instance is run, removed and cancelled, and a replay reports what failed again", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  const dialog = page.getByRole("dialog");
  await open("/agents/ticket-agent/ticket-2/queue");
  await page.getByRole("row", { name: /cannot work on broken-3/ }).waitFor();
  await page.getByRole("button", { name: "Run now work" }).click();
  await expect
    .poll(async () => (await server.api("GET", `${INSTANCES}/ticket-2/queue`)).body.result[0].attempts)
    .toBe(2);
  await page.getByRole("button", { name: "Remove work" }).click();
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByText("The queue is empty").waitFor();
  await page.getByRole("link", { name: /Schedules \(1\)/ }).click();
  await page.getByRole("button", { name: "Cancel remind" }).click();
  await dialog.getByRole("button", { name: "Cancel schedule" }).click();
  await page.getByText("No schedules").waitFor();

  await open("/agents/ticket-agent/ticket-1/dead-letters");
  await page.getByRole("button", { name: "Replay all" }).click();
  await page.getByTestId("replay-report").getByText("2 dead letters replayed, 2 failed again.").waitFor();
  await page.getByRole("button", { name: "Discard all" }).click();
  await dialog.getByRole("button", { name: "Discard" }).click();
  await page.getByText("No dead letters").waitFor();
  await close();
});

it("an instance that does not exist cannot be destroyed", async () => {
  const { page, open, close } = await openDashboard(browser, server, { expectedProblems: /status of 404/ });
  await open("/agents/ticket-agent/no-such");
  await page.getByText("This instance does not exist").waitFor();
  expect(await page.getByRole("button", { name: "Destroy instance" }).count()).toBe(0);
  await close();
});
