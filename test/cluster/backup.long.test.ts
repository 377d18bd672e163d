/** A backup of two nodes on PostgreSQL under load, restored into another database after both were killed. */
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { ownTables } from "../../packages/signalbox/src/database/postgres/own-tables.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import {
  BUDGET,
  callGateway,
  configOf,
  expectRestored,
  GATEWAY,
  startTraffic,
} from "../support/backup-traffic.ts";
import { CLUSTER_ENVIRONMENT, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { runCliHere } from "../support/run-cli.ts";
import { waitUntil } from "../support/wait-until.ts";
import { SECRET } from "../support/webhook-sender.ts";

let folder: string;
let provider: ProviderPeer;
let cluster: TestCluster;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "signalbox-test-"));
  provider = await startProvider((_, response) =>
    sendJson(response, 200, { model: "m", usage: { prompt_tokens: 1, completion_tokens: 6 } }),
  );
  cluster = await startTestCluster({
    file: configOf(provider.url),
    env: { HELD_WEBHOOK_SECRET: SECRET, HOLD: "yes" },
  });
});
afterAll(async () => {
  await cluster.stop();
  await provider.close();
  await rm(folder, { recursive: true, force: true });
});

const run = (...args: string[]) => runCliHere(args, { cwd: folder, env: CLUSTER_ENVIRONMENT });

async function query(text: string, url = cluster.postgres.url): Promise<{ name?: unknown }[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

it("what two nodes acknowledged before a backup began is there after a restore, and work goes on", async () => {
  const [first, second] = cluster.nodes;
  if (first === undefined || second === undefined) throw new Error("two nodes are needed");
  await first.api("PUT", GATEWAY, { authentication: true, ...BUDGET });
  const created = await first.api("POST", "/accounts/default/tokens", {
    name: "calls",
    permissions: ["gateway.run"],
  });
  // Alphabetically, notices of alerts come before the rules that they refer to.
  const rule = await first.api("POST", "/accounts/default/alerts", {
    name: "Errors",
    metric: "error_rate",
    threshold: 0.5,
    window: 60,
    receivers: [{ type: "webhook", url: "https://alerts.example.com/hook" }],
  });
  const notice = await first.api("POST", `/accounts/default/alerts/${rule.body.result.id}/test`);
  expect([rule.status, notice.status]).toEqual([200, 200]);
  const token: string = created.body.result.token;
  const traffic = startTraffic(cluster.urls, token, SECRET);
  await waitUntil(
    traffic.soFar,
    ({ entities, tagged, calls }) => Math.min(entities.length, tagged.length, calls) >= 15,
  );
  const before = traffic.soFar();
  // Every table is known; that of another program is left out, even if its tables refer to each other.
  const isOwn = ownTables();
  const tables = await query(
    "SELECT relname AS name FROM pg_class WHERE relkind IN ('r', 'p') AND NOT relispartition AND relnamespace = 'public'::regnamespace",
  );
  expect(tables.filter(({ name }) => !isOwn(String(name)))).toEqual([]);
  await query(
    'CREATE TABLE "other program" (id int PRIMARY KEY, peer int); CREATE TABLE peer (id int PRIMARY KEY REFERENCES "other program")',
  );
  await query('ALTER TABLE "other program" ADD FOREIGN KEY (peer) REFERENCES peer');
  const file = join(folder, "backup.tar");
  const remote = ["--url", second.url, "--token", CLUSTER_ENVIRONMENT["SIGNALBOX_ROOT_TOKEN"] ?? ""];
  expect(await run("backup", file, ...remote)).toMatchObject({ code: 0, stderr: "" });
  await Promise.all(cluster.nodes.map((node) => node.end("SIGKILL")));
  await traffic.stop();

  const restored = new URL(cluster.postgres.url);
  restored.pathname = "/restored";
  await query("CREATE DATABASE restored");
  const dataDir = join(folder, "data");
  const target = ["--data-dir", dataDir, "--database-url"];
  const full = await run("restore", file, ...target, cluster.postgres.url);
  expect(full).toMatchObject({ code: 2, stderr: expect.stringContaining("the database is not empty") });
  expect(existsSync(dataDir)).toBe(false);
  const none = await run("restore", file, "--data-dir", dataDir);
  expect(none).toMatchObject({ code: 2, stderr: expect.stringContaining("is a backup of PostgreSQL") });
  expect(await run("restore", file, ...target, restored.href)).toMatchObject({ code: 0, stderr: "" });

  const node = await cluster.join({ databaseUrl: restored.href, env: { HOLD: "" }, dataDir });
  await expectRestored(node.url, before);
  expect(await callGateway(node.url, token)).toBe(200);
  expect(await query("SELECT kind FROM alert_notice", restored.href)).toEqual([{ kind: "test" }]);
});
