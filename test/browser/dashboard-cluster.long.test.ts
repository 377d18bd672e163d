/** A cluster in the dashboard: nodes, instances and the database, while nodes stop and die and PostgreSQL is gone. */
import { join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { waitUntil } from "../support/wait-until.ts";
import { scrollWidth } from "./support/dashboard.ts";
import { launchBrowser, openPage } from "./support/launch-browser.ts";
import { seriousViolations } from "./support/serious-violations.ts";

const SCREENSHOTS = join(import.meta.dirname, "../../test-results/dashboard");
const MODULE = join(import.meta.dirname, "../fixtures/moving-agent.ts");
const INSTANCE = "/accounts/default/agents/moving-agent/instances/one";

let cluster: TestCluster;
let browser: Browser;
let first: ClusterNodeProcess;
let second: ClusterNodeProcess;

beforeAll(async () => {
  cluster = await startTestCluster({
    nodes: 2,
    file: { listener: { lameDuckMs: 60_000 } },
    args: ["--agents", MODULE],
  });
  [first, second] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
  browser = await launchBrowser();
  await first.api("POST", "/agents/moving-agent/one/rpc/add", []);
});
afterAll(async () => {
  await browser.close();
  await cluster.stop();
});
/** Also after a test that failed: the next one expects two nodes. */
afterEach(() => Promise.all(cluster.nodes.slice(2).map((node) => node.kill())));

let tries = 0;

async function logIn(page: Page): Promise<void> {
  const { path } = (await first.api("POST", "/login-links")).body.result as { path: string };
  await page.goto(first.url + path);
  await page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
}

/** Both themes have no serious violation, and no part is wider than a phone. The pictures are for people. */
async function look(page: Page, name: string): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    expect(
      await seriousViolations(page, colorScheme === "dark" ? { runOnly: ["color-contrast"] } : {}),
    ).toEqual([]);
    for (const width of [1280, 375]) {
      await page.setViewportSize({ width, height: 800 });
      expect(await scrollWidth(page, width)).toBeLessThanOrEqual(width);
      await page.screenshot({
        path: join(SCREENSHOTS, colorScheme, `${name}-${width}.png`),
        fullPage: true,
      });
    }
  }
  await page.setViewportSize({ width: 1280, height: 800 });
}

it("an instance is moved to the selected node, or to any other, and a failure is shown", async () => {
  const { page, close } = await openPage(browser);
  await logIn(page);
  // Those of a first try are declared dead some seconds after their end.
  await waitUntil(
    () => first.api("GET", `${INSTANCE}/move`),
    ({ body }) => body.result?.length === 2,
  );
  const nodeOf = async () => (await first.api("GET", INSTANCE)).body.result.node as string;
  const before = await waitUntil(nodeOf, (node) => node !== null);
  const other = before === "node-1" ? "node-2" : "node-1";
  const dialog = page.getByRole("dialog", { name: "Move one" });
  const open = () => page.getByRole("button", { name: "Move to another node" }).click();
  await page.goto(`${first.url}/dashboard/accounts/default/agents/moving-agent/one`);
  await open();
  await dialog.getByRole("option", { name: other }).waitFor({ state: "attached" });
  expect(await dialog.getByRole("option").allTextContents()).toEqual(["Any other node", other]);
  await dialog.getByLabel("Node").selectOption(other);
  await look(page, "cluster-move");
  await dialog.getByRole("button", { name: "Move" }).click();
  await page.getByText(`The instance was moved to ${other}.`).waitFor();
  expect(await nodeOf()).toBe(other);
  await look(page, "cluster-moved");
  await page.reload();
  await open();
  await dialog.getByRole("button", { name: "Move" }).click();
  await page.getByText(`The instance was moved to ${before}.`).waitFor();
  // The only other node begins to stop while the dialog is open.
  const third = await cluster.join({ name: "leaving", mayDie: true });
  await page.reload();
  await waitUntil(
    () => first.api("GET", `${INSTANCE}/move`),
    ({ body }) => body.result?.length === 3,
  );
  await open();
  await dialog.getByLabel("Node").selectOption("leaving");
  await third.kill();
  await waitUntil(
    () => first.api("GET", `${INSTANCE}/move`),
    ({ body }) => body.result?.length === 2,
  );
  await dialog.getByRole("button", { name: "Move" }).click();
  await dialog.getByText('No node with the name or id "leaving" is up').waitFor();
  await look(page, "cluster-move-failed");
  await close();
});

it("the page of the cluster shows nodes that drain and die, take-overs, unsafe settings and a database that is gone", async () => {
  // The page also lists nodes that are dead: a second try has other ones.
  const [drains, dies] = [`drains-${++tries}`, `dies-${tries}`];
  const leaving = await cluster.join({ name: drains, mayDie: true });
  const dying = await cluster.join({ name: dies, mayDie: true });
  const { page, close } = await openPage(browser);
  await logIn(page);
  await page.getByRole("link", { name: "Cluster" }).click();
  const row = (name: string) => page.getByRole("region", { name: "Nodes" }).getByRole("row", { name });
  await row("node-1").getByText("this node").waitFor();
  await row("node-2").getByText("connected").waitFor();
  await page.getByRole("row", { name: "fsync" }).getByText("unsafe").waitFor();
  await page.getByRole("row", { name: "synchronous_standby_names" }).getByText("note").waitFor();
  leaving.child.kill("SIGTERM");
  await row(drains).getByText("draining").first().waitFor();
  await waitUntil(
    () => first.api("POST", `${INSTANCE}/move`, { to: dies }),
    ({ status }) => status === 200,
  );
  await dying.kill();
  await row(dies).getByText("dead").waitFor();
  await waitUntil(
    () => second.api("POST", "/agents/moving-agent/one/rpc/add", []),
    ({ status }) => status === 200,
  );
  const takeOvers = page.getByRole("region", { name: "Last take-overs" });
  await takeOvers.getByRole("row", { name: new RegExp(`moving-agent/one.*${dies}.*node-[12]`) }).waitFor();
  await look(page, "cluster");
  await leaving.kill();
  await row(drains).waitFor({ state: "detached" });
  await cluster.postgres.stop("fast");
  try {
    await page.getByText("Not ready: node-1, node-2.").waitFor();
    await page.getByText("database: PostgreSQL cannot be reached").waitFor();
    await look(page, "cluster-gone");
  } finally {
    await cluster.postgres.start();
  }
  await page.getByText("Not ready:").waitFor({ state: "detached" });
  await close();
});
