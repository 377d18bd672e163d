import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";

const SCREENSHOTS = join(import.meta.dirname, "../../test-results/dashboard");

let cluster: TestCluster;
let browser: Browser;

beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { listener: { lameDuckMs: 60_000 } } });
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
  await cluster.stop();
});

it.each(["light", "dark"] as const)(
  "shows nodes, unsafe settings, a draining node and a database that is gone, in the %s theme",
  async (colorScheme) => {
    const [first] = cluster.nodes as readonly [ClusterNodeProcess];
    const leaving = await cluster.join({ name: `leaving-${colorScheme}` });
    const { page, close } = await openPage(browser, { colorScheme });
    const { path } = (await first.api("POST", "/login-links")).body.result as { path: string };
    await page.goto(first.url + path);
    await page.getByRole("link", { name: "Cluster" }).click();
    const row = (name: string) => page.getByRole("row", { name });
    await row("node-1").getByText("this node").waitFor();
    await row("node-2").getByText("connected").waitFor();
    await row("fsync").getByText("unsafe").waitFor();
    await row("synchronous_standby_names").getByText("note").waitFor();
    leaving.child.kill("SIGTERM");
    await row(leaving.name).getByText("draining").waitFor();
    await page.screenshot({ path: join(SCREENSHOTS, colorScheme, "cluster-nodes.png"), fullPage: true });
    await leaving.kill();
    await row(leaving.name).waitFor({ state: "detached" });
    await cluster.postgres.stop("fast");
    await page.getByText("Node node-1 is not ready.").waitFor();
    await page.getByText("database: PostgreSQL cannot be reached").waitFor();
    await page.screenshot({ path: join(SCREENSHOTS, colorScheme, "cluster-gone.png"), fullPage: true });
    await cluster.postgres.start();
    await page.getByText("Node node-1 is not ready.").waitFor({ state: "detached" });
    expect(await page.locator("h1").textContent()).toBe("Cluster");
    await close();
  },
);
