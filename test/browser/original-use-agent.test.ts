/** `useAgent` of the public package, unmodified, in a real browser against a real server. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { TEST_AGENTS } from "../support/agents.ts";
import { freePort } from "../support/free-port.ts";
import { startServerProcess } from "../support/server-process.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let server: TestServer;
let built: BuiltPage;
let browser: Browser;
beforeAll(async () => {
  server = await startTestServer({ file: { agents: { modules: [TEST_AGENTS] } } });
  built = await buildPage(join(import.meta.dirname, "original-use-agent-page"));
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await built.close();
  await server.stop();
});

const open = async (name: string, token = ROOT_TOKEN, url = server.url) => {
  const watched = await openPage(browser);
  const query = new URLSearchParams({ name, host: new URL(url).host, token });
  await watched.page.goto(`${built.url}?${query.toString()}`);
  return watched;
};

let tries = 0;
/** Another name for each try, so that a second one does not find the state of the first. */
const fresh = (name: string) => `${name}-${++tries}`;

describe("useAgent", () => {
  it("shows the state, calls methods, sets the state, and receives changes by other clients", async () => {
    const name = fresh("hook");
    const [one, two] = await Promise.all([open(name), open(name)]);
    for (const { page } of [one, two]) await page.waitForSelector("#state:text-is('{\"count\":0}')");
    await one.page.click("#call");
    await one.page.waitForSelector("#result:text-is('2')");
    await two.page.waitForSelector("#state:text-is('{\"count\":2}')");
    await two.page.click("#set");
    await one.page.waitForSelector("#state:text-is('{\"count\":50}')");
    await server.api("POST", `/agents/counter/${name}/rpc/increment`, [1]);
    for (const { page } of [one, two]) await page.waitForSelector("#state:text-is('{\"count\":51}')");
    // Strict Mode opens a socket, closes it and opens another; Chromium reports the closed one.
    const unexpected = [...one.problems, ...two.problems].filter(
      (problem) => !problem.includes("WebSocket is closed before"),
    );
    expect(unexpected).toEqual([]);
    await Promise.all([one.close(), two.close()]);
  });

  it("receives its identity, streamed results, and the message of an error", async () => {
    const { page, problems, close } = await open("streams");
    await page.waitForSelector("#identity:text-is('counter/streams')");
    await page.click("#stream");
    await page.waitForSelector("#result:text-is('0,1,2 done')");
    await page.click("#fail");
    await page.waitForSelector("#result:text-is('failed at once')");
    expect(problems.filter((problem) => !problem.includes("WebSocket is closed before"))).toEqual([]);
    await close();
  });

  it("reverts a state change that the server rejects as read-only", async () => {
    const { page, close } = await open("read-only", await server.token(["agents.read"]));
    await page.waitForSelector("#state:text-is('{\"count\":0}')");
    await page.click("#set");
    await page.waitForSelector("#refusal:text-is('Connection is readonly')");
    await page.waitForSelector("#state:text-is('{\"count\":0}')");
    await close();
  });

  it("reconnects after the server was killed and restarted, with the same state", async () => {
    const dataDir = await mkdtemp(join(tmpdir(), "signalbox-hook-"));
    onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
    const args = ["--port", String(await freePort()), "--data-dir", dataDir, "--agents", TEST_AGENTS];
    const env = { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN };
    const first = await startServerProcess(args, { env });
    onTestFinished(() => first.kill());
    const { page, close } = await open("restart", ROOT_TOKEN, first.url);
    await page.waitForSelector("#state:text-is('{\"count\":0}')");
    await page.click("#call");
    await page.waitForSelector("#result:text-is('2')");
    await first.end("SIGKILL");
    const second = await startServerProcess(args, { env });
    onTestFinished(() => second.kill());
    // A call made while disconnected is sent after the reconnect.
    await page.click("#call");
    await page.waitForSelector("#result:text-is('4')");
    await page.waitForSelector("#state:text-is('{\"count\":4}')");
    await close();
    await second.end("SIGTERM");
  });
});
