/** Two versions share a database. A newer version is simulated by the rows that its migrations would write. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho } from "../support/send-request.ts";

const MIGRATIONS = readdirSync(
  join(import.meta.dirname, "../../packages/signalbox/src/database/migrations"),
).filter((file) => file.endsWith(".sql"));
const NEWEST = Math.max(...MIGRATIONS.map((file) => Number(file.slice(0, 4))));

let cluster: TestCluster;
let hand: Client;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 0 });
  hand = new Client({ connectionString: cluster.postgres.url });
  await hand.connect();
});
afterAll(async () => {
  await hand.end();
  await cluster.stop();
});

/** What a newer version leaves behind; `needs` is the migration that a version must know to use its tables. */
async function migrateAsNewerVersion(id: number, needs: number): Promise<void> {
  await hand.query(
    "INSERT INTO schema_migrations (id, name, checksum, applied_at) VALUES ($1, 'later', '', 0)",
    [id],
  );
  await hand.query("INSERT INTO schema_compatibility (id, needs) VALUES ($1, $2)", [id, needs]);
}

it("of several nodes that start at once, one migrates the database, and all serve", async () => {
  const nodes = await Promise.all(["a", "b", "c"].map((name) => cluster.join({ name })));
  for (const node of nodes) expect((await node.api("GET", "/accounts/default/tokens")).status).toBe(200);
  const { rows } = await hand.query<{ id: string }>("SELECT id FROM schema_migrations ORDER BY id");
  expect(rows.map(({ id }) => Number(id))).toEqual(MIGRATIONS.map((file) => Number(file.slice(0, 4))));
});

it("a compatible migration of a newer version does not disturb running nodes, and others still join", async () => {
  await migrateAsNewerVersion(9001, NEWEST);
  const node = await cluster.join({ name: "d" });
  for (const one of [node, ...cluster.nodes]) expect((await callEcho(one)).status).toBe(200);
  await expect.poll(async () => (await node.api("GET", "/readyz", undefined, null)).status).toBe(200);
});

it("a node refuses a database that only newer versions can use, with one line", async () => {
  await migrateAsNewerVersion(9002, 9002);
  const { code, stderr } = await cluster.refused();
  expect([code, stderr]).toEqual([
    1,
    expect.stringMatching(new RegExp(`the database has schema 9002, and this version knows up to ${NEWEST}`)),
  ]);
  expect(stderr.trim().split("\n")).toHaveLength(1);
});

it("a running node leaves when only newer versions can use the database: not ready, 503, and no exit", async () => {
  const [node] = cluster.nodes;
  if (node === undefined) throw new Error("no node runs");
  await expect
    .poll(async () => (await node.api("GET", "/readyz", undefined, null)).text)
    .toContain("the database has schema 9002");
  await expect.poll(async () => (await callEcho(node)).status).toBe(503);
  const write = await node.api("POST", "/accounts/default/tokens", { name: "t", permissions: ["tags.read"] });
  expect(write.status).toBe(503);
  expect(node.child.exitCode).toBe(null);
  // The migration is undone by hand.
  await hand.query("DELETE FROM schema_compatibility WHERE id = 9002");
  await hand.query("DELETE FROM schema_migrations WHERE id = 9002");
  await expect.poll(async () => (await callEcho(node)).status).toBe(200);
});
