/** `useAgent` of the public package, unmodified, in a real browser against nodes of a cluster. */
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { type BuiltPage, buildPage } from "./support/built-page.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

let cluster: TestCluster;
let built: BuiltPage;
let browser: Browser;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { agents: { modules: [TEST_AGENTS] } } });
  built = await buildPage(join(import.meta.dirname, "original-use-agent-page"));
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await built.close();
  await cluster.stop();
});

it("pages at both nodes stay connected when one of the nodes stops, and share the state", async () => {
  const [stopped, kept] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  // Some of the instances run at the node that stops.
  const names = ["a", "b", "c", "d"];
  const pages = await Promise.all(
    names.map(async (name) => {
      const watched = await openPage(browser);
      const query = new URLSearchParams({ name, host: new URL(kept.url).host, token: ROOT_TOKEN });
      await watched.page.goto(`${built.url}?${query.toString()}`);
      await watched.page.waitForSelector("#state:text-is('{\"count\":0}')");
      return watched;
    }),
  );
  for (const { page } of pages) {
    await page.click("#call");
    await page.waitForSelector("#state:text-is('{\"count\":2}')");
  }
  expect(await stopped.end("SIGTERM")).toBe(0);
  for (const [i, name] of names.entries()) {
    const other = await new RawClient(`${kept.url}/agents/counter/${name}`).opened();
    expect(await other.call("increment", 1)).toMatchObject({ success: true, result: 3 });
    await pages[i]?.page.waitForSelector("#state:text-is('{\"count\":3}')");
    await pages[i]?.page.click("#call");
    await other.next((frame) => frame.type === "cf_agent_state" && frame.state.count === 5);
    other.close();
  }
  const problems = pages.flatMap((watched) => watched.problems);
  expect(problems.filter((problem) => !problem.includes("WebSocket is closed before"))).toEqual([]);
  await Promise.all(pages.map((watched) => watched.close()));
});
