/** `useAgent` in two browsers against a real service that is killed and restarted. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { freePort } from "../support/free-port.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN } from "../support/test-server.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let browser: Browser;
let built: BuiltPage;

beforeAll(async () => {
  [browser, built] = await Promise.all([
    launchBrowser(),
    buildPage(join(import.meta.dirname, "use-agent-page")),
  ]);
});

afterAll(async () => {
  await browser?.close();
  await built?.close();
});

/** Resolves to a function that starts the service, always on the same folder and port. */
async function prepare(): Promise<() => Promise<ServerProcess>> {
  const folder = await mkdtemp(join(tmpdir(), "signalbox-hook-"));
  const started: ServerProcess[] = [];
  onTestFinished(async () => {
    for (const server of started) await server.kill();
    await rm(folder, { recursive: true, force: true });
  });
  const args = ["--data-dir", folder, "--agents", TEST_AGENTS, "--port", String(await freePort())];
  return async () => {
    const server = await startServerProcess(args, { env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN } });
    started.push(server);
    return server;
  };
}

const shows = (page: Page, selector: string, text: string) =>
  page.locator(selector, { hasText: new RegExp(`^${text}$`) }).waitFor();

it("two browsers show the same state of an instance, before and after the service is killed and restarted", async () => {
  const start = await prepare();
  const server = await start();
  const watched = await Promise.all([openPage(browser), openPage(browser)]);
  const query = new URLSearchParams({ server: server.url, token: ROOT_TOKEN, name: "shared" });
  const pages = watched.map(({ page }) => page);
  const [first, second] = pages as [Page, Page];
  for (const page of pages) {
    await page.goto(`${built.url}?${query.toString()}`);
    await shows(page, "#count", "0");
  }
  await first.click("#add");
  for (const page of pages) await shows(page, "#count", "1");
  await second.click("#set");
  for (const page of pages) await shows(page, "#count", "100");
  expect(watched.flatMap(({ problems }) => problems)).toEqual([]);

  await server.end("SIGKILL");
  for (const page of pages) await page.locator("#status", { hasText: /waiting|connecting/ }).waitFor();
  await start();
  for (const page of pages) await shows(page, "#status", "open");
  await first.click("#add");
  for (const page of pages) await shows(page, "#count", "101");
  await Promise.all(watched.map(({ close }) => close()));
});
