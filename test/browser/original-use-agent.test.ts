/** `useAgent` of the public package, unmodified, in a real browser against a real server. */
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let server: TestServer;
let built: BuiltPage;
let browser: Browser;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
  built = await buildPage(join(import.meta.dirname, "pages/use-agent"));
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await built.close();
  await server.stop();
});

const open = async (name: string) => {
  const watched = await openPage(browser);
  const query = new URLSearchParams({ name, host: new URL(server.url).host, token: ROOT_TOKEN });
  await watched.page.goto(`${built.url}?${query.toString()}`);
  return watched;
};

describe("useAgent", () => {
  it("shows the state, calls methods, sets the state, and follows what others change", async () => {
    const [one, two] = await Promise.all([open("hook"), open("hook")]);
    for (const { page } of [one, two]) await page.waitForSelector("#state:text-is('{\"count\":0}')");
    await one.page.click("#call");
    await one.page.waitForSelector("#result:text-is('2')");
    await two.page.waitForSelector("#state:text-is('{\"count\":2}')");
    await two.page.click("#set");
    await one.page.waitForSelector("#state:text-is('{\"count\":50}')");
    await server.api("POST", "/agents/counter/hook/rpc/increment", [1]);
    for (const { page } of [one, two]) await page.waitForSelector("#state:text-is('{\"count\":51}')");
    // Strict Mode opens a socket, drops it and opens another; Chromium reports the dropped one.
    const real = [...one.problems, ...two.problems].filter(
      (problem) => !problem.includes("WebSocket is closed before"),
    );
    expect(real).toEqual([]);
    await Promise.all([one.close(), two.close()]);
  });
});
