/** Which processes may share a database, and what a refused one is told. */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it, onTestFinished } from "vitest";
import { scopeLock } from "../../packages/signalbox/src/database/postgres/node-table.ts";
import { CLUSTER_ENVIRONMENT, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { spawnCli } from "../support/server-process.ts";

const GITHUB = { GITHUB_WEBHOOK_SECRET: "secret-of-github" };

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, env: GITHUB });
});
afterAll(() => cluster.stop());

it("both nodes are members, and serve", async () => {
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  const { rows } = await client.query(
    "SELECT name, state, host, port > 0 AS open FROM signalbox_node ORDER BY inc",
  );
  await client.end();
  expect(rows).toEqual([
    { name: "node-1", state: "up", host: "127.0.0.1", open: true },
    { name: "node-2", state: "up", host: "127.0.0.1", open: true },
  ]);
  for (const node of cluster.nodes)
    expect((await node.api("GET", "/accounts/default/tokens")).status).toBe(200);
  await expect
    .poll(() => cluster.nodes.map((node) => /linked to a node/.test(node.stderr())))
    .toEqual([true, true]);
});

it.each([
  ["SIGNALBOX_CLUSTER_SECRET", "", /set the same SIGNALBOX_CLUSTER_SECRET on all of them/],
  ["SIGNALBOX_CLUSTER_SECRET", "another-secret-of-another-cluster", /SIGNALBOX_CLUSTER_SECRET differs/],
  ["SIGNALBOX_ROOT_TOKEN", "another-root-token-of-the-cluster", /SIGNALBOX_ROOT_TOKEN differs .* "node-\d"/],
  ["SIGNALBOX_ENCRYPTION_KEY", "another-encryption-key-of-the-node", /SIGNALBOX_ENCRYPTION_KEY differs/],
  ["SIGNALBOX_MASTER_KEY", "cd".repeat(32), /SIGNALBOX_MASTER_KEY differs/],
  ["WEBHOOK_SECRET", "another", /^signalbox: WEBHOOK_SECRET differs/],
  ["GITHUB_WEBHOOK_SECRET", "another", /GITHUB_WEBHOOK_SECRET differs/],
])("%s=%j is refused with one line", async (variable, value, line) => {
  const { code, stderr } = await cluster.refused({ env: { [variable]: value } });
  expect([code, stderr]).toEqual([1, expect.stringMatching(line)]);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

it("the database has no secret of a node", async () => {
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  const { rows: nodes } = await client.query("SELECT * FROM signalbox_node");
  const { rows: clusters } = await client.query("SELECT * FROM signalbox_cluster");
  await client.end();
  const text = JSON.stringify([nodes, clusters]);
  expect(text).toContain("SIGNALBOX_MASTER_KEY");
  for (const secret of Object.values(CLUSTER_ENVIRONMENT)) expect(text).not.toContain(secret);
});

it("a key may be replaced node by node: a node that accepts the current key joins", async () => {
  const key = "encryption-key-of-the-test-cluster";
  const next = "the-next-encryption-key-of-the-cluster";
  const node = await cluster.join({
    name: "node-3",
    // The secret of a source that the others do not have is being added.
    env: { SIGNALBOX_ENCRYPTION_KEY: `${key},${next}`, GITLAB_WEBHOOK_SECRET: "new" },
  });
  await node.end("SIGTERM");
  // This node would write with a key that the others do not have.
  const { stderr } = await cluster.refused({ env: { SIGNALBOX_ENCRYPTION_KEY: `${next},${key}` } });
  expect(stderr).toMatch(/SIGNALBOX_ENCRYPTION_KEY differs/);
});

it("a node that waits for the migrations of another one says so, and starts when they are done", async () => {
  const hand = new Client({ connectionString: cluster.postgres.url });
  await hand.connect();
  onTestFinished(() => hand.end());
  await hand.query("BEGIN");
  await hand.query("SELECT pg_advisory_xact_lock($1)", [scopeLock("migrations")]);
  const dataDir = await mkdtemp(join(tmpdir(), "signalbox-waiting-"));
  onTestFinished(() => rm(dataDir, { recursive: true, force: true }));
  const child = spawnCli(
    ["serve", "--json", "--port", "0", "--data-dir", dataDir, "--database-url", cluster.postgres.url],
    { env: { ...CLUSTER_ENVIRONMENT, ...GITHUB }, cwd: dataDir },
  );
  let [output, log] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (text: string) => (output += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (log += text));
  await expect.poll(() => log).toContain("the start waits for the migrations of the database");
  expect(output).toBe("");
  await hand.query("COMMIT");
  await expect.poll(() => output).toContain('"url"');
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  expect(await exit).toEqual([0, null]);
});
