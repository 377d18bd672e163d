/** The agent and webhook pages of the dashboard: test events, deliveries, live state, and every tab of an instance. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../support/free-port.ts";
import { startTestServer, type TestServer, type TestServerOptions } from "../support/test-server.ts";
import { openDashboard } from "./support/dashboard.ts";
import { launchBrowser } from "./support/launch-browser.ts";

const OPTIONS: TestServerOptions = {
  environment: { GITHUB_WEBHOOK_SECRET: "a-secret-for-the-test" },
  file: {
    agents: { modules: [join(import.meta.dirname, "../fixtures/work-agents.ts")] },
  },
};

let server: TestServer;
let browser: Browser;

beforeAll(async () => {
  server = await startTestServer(OPTIONS);
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await server.stop();
});

let tries = 0;
/** Another name for each try, so that a second one does not find the events of the first. */
const fresh = (name: string) => `${name}-${++tries}`;

const sendEvent = async (to: TestServer, entity: string) => {
  const { body } = await to.api("POST", "/accounts/default/webhooks/sources/github/test", { entity });
  expect(body.result.status).toBe(200);
};

const eventCount = async (page: Page) =>
  Number(/"eventCount": (\d+)/.exec((await page.getByTestId("live-state").textContent()) ?? "")?.[1]);

it("sends a test event from the page of a source and links to the instance that processed it", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks");
  await page.getByRole("link", { name: "github" }).click();
  await page.getByRole("region", { name: "Endpoint URL" }).waitFor();
  expect(await page.getByRole("region", { name: "Endpoint URL" }).textContent()).toBe(
    `${server.url}/webhooks/github`,
  );
  await page.getByRole("button", { name: "Send test event" }).click();
  const name = fresh("first");
  await page.getByLabel("Entity").fill(`acme/${name}`);
  await page.getByRole("button", { name: "Send", exact: true }).click();
  await page.getByTestId("test-response").filter({ hasText: "Response 200" }).waitFor();
  await page.getByRole("link", { name: `Open the instance acme-${name}` }).click();
  await page.getByRole("heading", { level: 1, name: `acme-${name}` }).waitFor();
  const delivery = page.getByRole("listitem").filter({ hasText: "delivery" });
  await delivery.getByText("github").click();
  await delivery.getByRole("list", { name: "State changes" }).getByText("eventCount").first().waitFor();
  await page.getByRole("link", { name: "State", exact: true }).click();
  await page.getByTestId("live-state").waitFor();
  expect(await eventCount(page)).toBe(1);
  await close();
});

it("names the variable to set for a source without a secret", async () => {
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks/sources/stripe");
  await page
    .getByText("Test events require a secret. Set STRIPE_WEBHOOK_SECRET and restart the service.")
    .waitFor();
  expect(await page.getByRole("button", { name: "Send test event" }).isDisabled()).toBe(true);
  await close();
});

it("lists rejected deliveries with the reason, and replays an accepted delivery", async () => {
  await sendEvent(server, "acme/replayed");
  await fetch(`${server.url}/webhooks/github`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-hub-signature-256": `sha256=${"0".repeat(64)}` },
    body: "{}",
  });
  const { page, open, close } = await openDashboard(browser, server);
  await open("/webhooks/deliveries");
  await page
    .getByRole("row", { name: /rejected the signature does not match/ })
    .first()
    .waitFor();
  await page.getByLabel("Status").selectOption("accepted");
  const row = page.getByRole("row", { name: /acme-replayed/ });
  await row.getByRole("link").first().click();
  await page.getByRole("region", { name: "Body" }).filter({ hasText: "acme/replayed" }).first().waitFor();
  await page.getByRole("button", { name: "Replay" }).click();
  await page.getByText("Replayed: processed by the agent.").waitFor();
  await close();
});

it("updates the state in two browsers when it changes", async () => {
  const name = fresh("live");
  await sendEvent(server, `acme/${name}`);
  const first = await openDashboard(browser, server);
  const second = await openDashboard(browser, server);
  for (const { open, page } of [first, second]) {
    await open(`/agents/webhook-agent/acme-${name}/state`);
    await page.getByText("live updates").waitFor();
    await page.getByTestId("live-state").waitFor();
    expect(await eventCount(page)).toBe(1);
  }
  await sendEvent(server, `acme/${name}`);
  await sendEvent(server, `acme/${name}`);
  for (const { page } of [first, second]) {
    await expect.poll(() => eventCount(page)).toBe(3);
    await page.getByText("2 changes since you opened this page").waitFor();
  }
  await first.close();
  await second.close();
});

it("reconnects after a restart of the server and stays logged in", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-restart-"));
  const port = await freePort();
  const before = await startTestServer({ ...OPTIONS, dataDir, port });
  await sendEvent(before, "acme/restarted");
  const { page, open, close } = await openDashboard(browser, before, {
    // While the server stops and is down, the browser logs every request that fails.
    expectedProblems: /net::ERR_|status of 503|WebSocket connection to/,
  });
  await open("/agents/webhook-agent/acme-restarted/state");
  await page.getByText("live updates").waitFor();
  await before.stop();
  await page.getByText("live updates").waitFor({ state: "detached" });
  const after = await startTestServer({ ...OPTIONS, dataDir, port });
  await page.getByText("live updates").waitFor();
  await sendEvent(after, "acme/restarted");
  await expect.poll(() => eventCount(page)).toBe(2);
  await close();
  await after.stop();
  await rm(dataDir, { recursive: true, force: true });
});

it("finds instances by a part of the name", async () => {
  await sendEvent(server, "acme/needle");
  const { page, open, close } = await openDashboard(browser, server);
  await open("/agents");
  await page.getByRole("link", { name: "WebhookAgent" }).click();
  await page.getByLabel("Search").fill("need");
  await page.getByRole("link", { name: "acme-needle" }).waitFor();
  await expect
    .poll(() => page.getByRole("region", { name: "Instances" }).locator("tbody tr").count())
    .toBe(1);
  await page.getByLabel("Search").fill("haystack");
  await page.getByText("No matching instances").waitFor();
  await close();
});

it("shows and calls the instance of the selected account", async () => {
  await server.api("POST", "/accounts", { id: "b" });
  const name = fresh("of-two");
  for (const query of ["", "?account=b"])
    await server.api("POST", `/agents/worker/${name}/rpc/done${query}`, []);
  const { page, open, close } = await openDashboard(browser, server);
  await open("/agents");
  await page.getByRole("button", { name: "Account and theme" }).click();
  await page.getByLabel("Account", { exact: true }).selectOption("b");
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await page.goto(`${server.url}/dashboard/accounts/b/agents/worker/${name}/console`);
  await page.getByLabel("Method").selectOption("plan");
  await page.getByRole("button", { name: "Write the arguments as JSON" }).click();
  await page.getByLabel("Arguments").fill(JSON.stringify([3600, "later"]));
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByTestId("call-result").waitFor();
  await page.getByRole("link", { name: /Schedules \(1\)/ }).waitFor();
  const ofDefault = await server.api("GET", `/accounts/default/agents/worker/instances/${name}`);
  expect(ofDefault.body.result).toMatchObject({ schedule_count: 0 });
  await page.goto(`${server.url}/dashboard/accounts/b/agents/worker/${name}`);
  await page.getByText("live updates").waitFor();
  await close();
});

it("calls methods in the console, replays dead letters, and shows the queue, schedules, connections, events and SQL rows", async () => {
  // The first connection creates the instance.
  const name = fresh("bench");
  const { WebSocket } = await import("ws");
  const socket = new WebSocket(
    `${server.url.replace("http", "ws")}/agents/worker/${name}?token=root-token-of-the-test-server`,
  );
  await new Promise((resolve) => socket.once("message", resolve));

  // The rejected DELETE at the end returns 400, which the browser logs to its console.
  const { page, open, close } = await openDashboard(browser, server, { expectedProblems: /status of 400/ });
  await open(`/agents/worker/${name}/console`);
  const call = async (method: string, args: unknown[]) => {
    await page.getByLabel("Method").selectOption(method);
    const write = page.getByRole("button", { name: "Write the arguments as JSON" });
    if (await write.isVisible()) await write.click();
    await page.getByLabel("Arguments").fill(JSON.stringify(args));
    await page.getByRole("button", { name: "Call" }).click();
    await page.getByTestId("call-result").waitFor();
  };
  await call("enqueue", [["fine", "fail-always"], { retry: { maxAttempts: 1 } }]);
  await call("plan", [3600, "later"]);
  await call("done", []);
  await page.getByLabel("Arguments").fill("nonsense");
  await page.getByRole("button", { name: "Call" }).click();
  await page.getByRole("alert").filter({ hasText: "not valid JSON" }).waitFor();
  await page.getByRole("button", { name: /^plan\(3600, "later"\)/ }).click();
  await page.getByRole("button", { name: "Use a field for each argument" }).click();
  expect(await page.getByLabel("Method").inputValue()).toBe("plan");
  expect(await page.getByRole("textbox").first().inputValue()).toBe("3600");

  await page.getByRole("link", { name: "Connections" }).click();
  await page
    .getByRole("row", { name: /read and write/ })
    .first()
    .waitFor();
  socket.close();

  await page.getByRole("link", { name: /Schedules \(1\)/ }).click();
  await page.getByRole("row", { name: /tick/ }).waitFor();

  await page.getByRole("link", { name: /Dead letters \(1\)/ }).click();
  await page.getByRole("row", { name: /cannot do fail-always/ }).waitFor();
  const letters = `/accounts/default/agents/worker/instances/${name}/dead-letters`;
  const deadLetters = async () => (await server.api("GET", letters)).body.result as { id: string }[];
  const [first] = await deadLetters();
  await page.getByRole("button", { name: "Replay", exact: true }).click();
  // The replayed work fails again and becomes a new dead letter.
  await expect.poll(async () => (await deadLetters()).map(({ id }) => id === first?.id)).toEqual([false]);
  await page.reload();
  await page.getByRole("button", { name: "Discard", exact: true }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Discard" }).click();
  await page.getByText("No dead letters").waitFor();

  await page.getByRole("link", { name: /Queue \(0\)/ }).click();
  await page.getByText("The queue is empty").waitFor();

  await page.getByRole("link", { name: "Timeline" }).click();
  const times = page.getByRole("list", { name: "Turns" }).locator("time");
  await times.first().waitFor();
  const starts = await times.evaluateAll((all) => all.map((time) => time.getAttribute("datetime") ?? ""));
  expect(starts).toEqual(starts.toSorted((a, b) => b.localeCompare(a)));
  await page.getByRole("button", { name: "Failed" }).click();
  await page.getByRole("list", { name: "Turns" }).getByText("cannot do fail-always").first().waitFor();

  await page.getByRole("link", { name: "SQL" }).click();
  await page.getByRole("navigation", { name: "Tables" }).getByRole("button", { name: "done" }).click();
  await page.getByRole("region", { name: "Rows" }).getByText("fine#1").waitFor();
  await page.getByLabel("Statement").fill("SELECT what FROM done ORDER BY id");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("region", { name: "Rows" }).getByText("fine#1").waitFor();
  await page.getByLabel("Statement").fill("DELETE FROM done");
  await page.getByRole("button", { name: "Run" }).click();
  await page.getByRole("alert").waitFor();
  await close();
});

it("destroys an instance after confirmation", async () => {
  await sendEvent(server, "acme/destroyed");
  const { page, open, close } = await openDashboard(browser, server, { expectedProblems: /WebSocket|404/ });
  await open("/agents/webhook-agent/acme-destroyed/queue");
  await page.getByRole("button", { name: "Destroy instance" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Destroy" }).click();
  await page.getByRole("heading", { level: 1, name: "webhook-agent" }).waitFor();
  const { status } = await server.api(
    "GET",
    "/accounts/default/agents/webhook-agent/instances/acme-destroyed",
  );
  expect(status).toBe(404);
  await close();
});
