/** A synchronous standby replaces PostgreSQL under two nodes in use, and a third one is started afterwards. */
import { Client } from "pg";
import { expect, it, onTestFinished } from "vitest";
import { type ClusterNodeProcess, startTestCluster } from "../support/cluster.ts";
import { callEcho, createToken } from "../support/send-request.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";

async function makeSynchronous(primary: TestPostgres): Promise<void> {
  const client = new Client({ connectionString: primary.url });
  await client.connect();
  await client.query("ALTER SYSTEM SET synchronous_standby_names = '*'");
  await client.query("SELECT pg_reload_conf()");
  const isReplicated = "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'";
  await expect.poll(async () => (await client.query(isReplicated)).rowCount).toBe(1);
  await client.end();
}

it("no call fails, no acknowledged write is lost, nothing is reported as lost, and a node can be started", async () => {
  const primary = await openTestPostgres();
  onTestFinished(() => primary.drop());
  const standby = await primary.openStandby();
  onTestFinished(() => standby.drop());
  await makeSynchronous(primary);
  const { host } = new URL(primary.url);
  const databaseUrl = primary.url.replace(host, `${host},${new URL(standby.url).host}`);
  const cluster = await startTestCluster({ nodes: 0, postgres: primary });
  onTestFinished(() => cluster.stop());
  const nodes = [
    await cluster.join({ name: "a", databaseUrl }),
    await cluster.join({ name: "b", databaseUrl }),
  ];

  let isDone = false;
  let calls = 0;
  const failed: number[] = [];
  const written: string[] = [];
  const unexpected: number[] = [];
  const call = async (node: ClusterNodeProcess) => {
    while (!isDone) {
      const { status } = await callEcho(node);
      if (status === 200) calls += 1;
      else failed.push(status);
    }
  };
  const write = async (node: ClusterNodeProcess) => {
    while (!isDone) {
      const { status, body } = await createToken(node);
      if (status === 200) written.push(body.result.id);
      else if (status !== 503) unexpected.push(status);
    }
  };
  const clients = nodes.flatMap((node) => [call(node), write(node)]);
  try {
    await expect.poll(() => written.length).toBeGreaterThan(20);
    await primary.stop("kill");
    const before = calls;
    await expect.poll(() => calls).toBeGreaterThan(before + 10);
    await standby.promote();
    const during = written.length;
    await expect.poll(() => written.length).toBeGreaterThan(during + 10);
  } finally {
    isDone = true;
    await Promise.all(clients);
  }
  expect([failed, unexpected]).toEqual([[], []]);
  // The server that is named first is down.
  const late = await cluster.join({ name: "late", databaseUrl });
  expect((await createToken(late)).status).toBe(200);
  const hand = new Client({ connectionString: standby.url });
  await hand.connect();
  const { rows } = await hand.query<{ id: string }>("SELECT id FROM token");
  await hand.end();
  const stored = new Set(rows.map(({ id }) => id));
  expect(written.filter((id) => !stored.has(id))).toEqual([]);
  for (const node of nodes) {
    const { lost_commits } = (await node.api("GET", "/cluster")).body.result;
    expect([lost_commits.count, node.child.exitCode]).toEqual([0, null]);
  }
});
