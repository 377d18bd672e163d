/** The open dashboard while the server stops, starts again, is upgraded, or does not answer. */
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it, onTestFinished } from "vitest";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { type Dashboard, openDashboard } from "./support/dashboard.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let browser: Browser;
let dataDir: string;
let server: TestServer;
let dashboard: Dashboard;
let page: Page;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(() => browser.close());
beforeEach(async () => {
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-restart-"));
  server = await startTestServer({ dataDir });
  dashboard = await openDashboard(browser, server, {
    expectedProblems: /net::ERR_(CONNECTION|EMPTY|INCOMPLETE|SOCKET)|status of (404|502)|PartMissingError/,
  });
  ({ page } = dashboard);
  await page.evaluate("globalThis.isTheSameDocument = true");
});
afterEach(async () => {
  await dashboard.close();
  await server.stop();
  await rm(dataDir, { recursive: true, force: true });
});

const link = (name: string) =>
  page.getByRole("navigation", { name: "Main" }).getByRole("link", { name, exact: true });
const isTheSameDocument = () => page.evaluate("globalThis.isTheSameDocument === true");
const tagsPage = () => page.getByRole("button", { name: "Tag a resource" });

/** The same address and data, as after an upgrade or a crash. */
async function startAgain(): Promise<void> {
  server = await startTestServer({ dataDir, port: Number(new URL(server.url).port) });
}

/** Counts the documents that are requested from now on. */
function countDocuments(): () => number {
  let count = 0;
  page.on("request", (request) => (count += request.isNavigationRequest() ? 1 : 0));
  return () => count;
}

it("a page that is not loaded yet says that the server cannot be reached, and opens when the server is back", async () => {
  await server.stop();
  await link("Tags").click();
  await page.getByRole("heading", { level: 1, name: "Tags" }).waitFor();
  const notice = page.getByRole("alert");
  await notice.getByText("The server cannot be reached. It may be restarting.").waitFor();
  await notice.getByText("tries again by itself").waitFor();
  await startAgain();
  await tagsPage().waitFor();
  await notice.waitFor({ state: "detached" });
  expect(await isTheSameDocument()).toBe(true);
});

it("a tab of a page and the palette work in the same way", async () => {
  await dashboard.open("/gateways/default");
  await server.stop();
  await page.getByRole("link", { name: "Routes" }).click();
  await page.getByRole("alert").getByText("The server cannot be reached").waitFor();
  await page.keyboard.press("Control+k");
  await page.getByRole("dialog", { name: "Command palette" }).waitFor();
  await page.keyboard.press("Escape");
  await startAgain();
  await page.getByText("No routes yet").waitFor();
});

it("a page whose file has another name since an upgrade is opened by one reload", async () => {
  const documents = countDocuments();
  await page.route("**/assets/tags-page-*.js", (route) =>
    documents() === 0 ? route.fulfill({ status: 404, json: {} }) : route.continue(),
  );
  await link("Tags").click();
  await tagsPage().waitFor();
  expect(documents()).toBe(1);
  await page.goBack();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
});

it("a page whose file stays missing is reloaded once, says so, and leaves the other pages alone", async () => {
  const documents = countDocuments();
  await page.route("**/assets/tags-page-*.js", (route) => route.fulfill({ status: 404, json: {} }));
  await link("Tags").click();
  await page.getByRole("alert").getByText("The server does not have this page").waitFor();
  expect(documents()).toBe(1);
  await link("Webhooks").click();
  await page.getByRole("heading", { level: 1, name: "Webhooks" }).waitFor();
  expect(documents()).toBe(1);
  await page.unroute("**/assets/tags-page-*.js");
  await page.goBack();
  await page.getByRole("button", { name: "Try again" }).click();
  await tagsPage().waitFor();
});

it("a missing file that no navigation asked for does not reload the page, and input stays", async () => {
  await dashboard.open("/gateways/default/playground");
  await page.evaluate("globalThis.isTheSameDocument = true");
  await page.route("**/assets/markdown-blocks-*.js", (route) => route.fulfill({ status: 404, json: {} }));
  const message = page.getByLabel("Message 1", { exact: true });
  // The second answer comes when the file is known to be missing.
  for (const text of ["a **long** message", "a **second** message"]) {
    await message.fill(text);
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByRole("region", { name: "Answer" }).getByText(text).waitFor();
  }
  expect(await message.inputValue()).toBe("a **second** message");
  expect(await isTheSameDocument()).toBe(true);
});

it("live pages go on after a restart behind a proxy that answered meanwhile", async () => {
  const tag = (env: string) =>
    server.api("PUT", "/accounts/default/tags", {
      resource_type: "worker",
      resource_id: "w-1",
      tags: { env },
    });
  await tag("first");
  await dashboard.open("/tags/changes");
  await page.getByText("first").waitFor();
  await server.api("POST", "/agents/webhook-agent/device-1/rpc/getEvents", []);
  const instance = await page.context().newPage();
  await instance.goto(`${server.url}/dashboard/accounts/default/agents/webhook-agent/device-1`);
  await instance.getByText("live updates").waitFor();
  await server.stop();
  await instance.getByText("reconnecting").waitFor();
  const answered = Promise.withResolvers<void>();
  const proxy = createServer((request, response) => {
    if (request.headers.accept?.includes("event-stream") === true) answered.resolve();
    response.writeHead(502, { "content-type": "text/html" }).end("Bad Gateway");
  });
  await new Promise<void>((resolve) => proxy.listen(Number(new URL(server.url).port), "127.0.0.1", resolve));
  await answered.promise;
  proxy.closeAllConnections();
  await new Promise((resolve) => proxy.close(resolve));
  await startAgain();
  await tag("second");
  await page.getByText("second").waitFor();
  await tag("third");
  await page.getByText("third").waitFor();
  expect(await page.getByRole("row", { name: /w-1/ }).count()).toBe(3);
  await instance.getByText("live updates").waitFor();
});

it("a form that is sent while the server is away keeps its input and can be sent again", async () => {
  await dashboard.open("/gateways");
  await page.getByRole("button", { name: "Create gateway" }).click();
  const dialog = page.getByRole("dialog");
  const submit = dialog.getByRole("button", { name: "Create gateway" });
  await dialog.getByLabel("Name").fill("after-restart");
  await server.stop();
  await submit.click();
  // What may change something is not repeated by itself, and the notice does not say so.
  await dialog.getByText("Try again when it is back").waitFor();
  expect(await dialog.getByText("by itself").count()).toBe(0);
  await startAgain();
  await submit.click();
  await page.getByRole("heading", { level: 1, name: "after-restart" }).waitFor();
});

it("a call of the playground that finds no server says so, and can be sent again", async () => {
  await dashboard.open("/gateways/default/playground");
  await page.getByLabel("Message 1", { exact: true }).fill("hello again");
  await server.stop();
  const send = page.getByRole("button", { name: "Send" });
  const answer = page.getByRole("region", { name: "Answer" });
  await send.click();
  await answer.getByText("The server cannot be reached").waitFor();
  await startAgain();
  await send.click();
  await answer.getByText("hello again").waitFor();
});

it("a server that does not answer: the page has its title at once, and a notice says what it waits for", async () => {
  const hung = await startServerProcess(["--data-dir", join(dataDir, "hung")], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
  });
  onTestFinished(() => hung.kill());
  const { page: waiting, problems, close } = await openPage(browser);
  const notice = waiting.getByRole("status").getByText("The server does not answer yet");
  await waiting.goto(`${hung.url}/dashboard/`);
  await waiting.getByLabel("Token").fill(ROOT_TOKEN);
  await waiting.getByRole("button", { name: "Log in" }).click();
  await waiting.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  await waiting.locator(".loading").first().waitFor({ state: "detached" });
  hung.child.kill("SIGSTOP");
  // A page that is shown asks again by itself.
  await notice.waitFor();
  await waiting.getByRole("link", { name: "Tags" }).click();
  await waiting.getByRole("heading", { level: 1, name: "Tags" }).waitFor();
  await waiting.locator(".loading").waitFor();
  await notice.waitFor();
  hung.child.kill("SIGCONT");
  await waiting.getByRole("button", { name: "Tag a resource" }).waitFor();
  await notice.waitFor({ state: "detached" });
  expect(problems).toEqual([]);
  await close();
});

it("a server that does not answer the first request of the dashboard: the notice is shown, too", async () => {
  const go = Promise.withResolvers<void>();
  await page.route("**/dashboard/session", async (route) => {
    await go.promise;
    await route.continue();
  });
  await page.reload();
  await page.getByText("The server does not answer yet").waitFor();
  go.resolve();
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
});
