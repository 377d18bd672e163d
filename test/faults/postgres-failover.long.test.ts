/** A standby replaces PostgreSQL under a server that runs alone, without commits that the primary had acknowledged. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { patiently } from "../support/patience.ts";
import { readMetric } from "../support/read-metric.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { callEcho, codeOf, createToken, sendRequest } from "../support/send-request.ts";
import { type ServerProcess, startServerProcess } from "../support/server-process.ts";
import { openTestPostgres, type TestPostgres, type TestStandby } from "../support/test-postgres.ts";

let primary: TestPostgres;
let standby: TestStandby;
let dataDir: string;
let server: ServerProcess;

beforeAll(async () => {
  primary = await openTestPostgres();
  standby = await primary.openStandby();
  dataDir = await mkdtemp(join(tmpdir(), "signalbox-failover-"));
  const config = join(dataDir, "signalbox.json");
  await writeFile(config, JSON.stringify(patiently({ cluster: { maxStaleMs: 15_000 } })));
  const { host } = new URL(primary.url);
  const url = primary.url.replace(host, `${host},${new URL(standby.url).host}`);
  server = await startServerProcess(["--data-dir", dataDir, "--config", config, "--database-url", url], {
    env: { SIGNALBOX_ROOT_TOKEN: ROOT_TOKEN },
    cwd: dataDir,
  });
});
afterAll(async () => {
  await server.kill();
  await standby.drop();
  await primary.drop();
  await rm(dataDir, { recursive: true, force: true });
});

const send = (method: string, path: string, body?: unknown) => sendRequest(server, method, path, body);
const statusOf = async () => (await send("GET", "/cluster")).body.result;

async function count(url: string, query: string): Promise<number | null> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(query)).rowCount;
  } finally {
    await client.end();
  }
}

it("unsafe settings of PostgreSQL are reported at the start and to operators", async () => {
  expect(server.stderr()).toContain("PostgreSQL has fsync = off: a crash of the server's machine loses");
  expect((await statusOf()).settings).toContainEqual({
    name: "fsync",
    value: "off",
    is_safe: false,
    note: expect.any(String),
  });
  expect(await readMetric(server, "signalbox_database_unsafe_settings")).toBe(1);
});

it("a server that runs alone refuses calls when PostgreSQL has hung for cluster.maxStaleMs, and serves again afterwards", async () => {
  await primary.freeze();
  expect((await callEcho(server)).status).toBe(200);
  await expect.poll(async () => (await callEcho(server)).status).toBe(503);
  const refused = await createToken(server);
  expect([refused.status, codeOf(refused), refused.headers.get("retry-after")]).toEqual([503, 7017, "5"]);
  expect((await send("GET", "/healthz")).status).toBe(200);
  await primary.thaw();
  await expect.poll(async () => (await callEcho(server)).status).toBe(200);
  await expect.poll(async () => (await createToken(server)).status).toBe(200);
});

it("lost commits are logged, counted and shown; the server goes on with what the new primary has", async () => {
  const kept: string = (await createToken(server)).body.result.id;
  await expect.poll(() => count(standby.url, `SELECT 1 FROM token WHERE id = '${kept}'`)).toBe(1);
  await standby.disconnect();
  const lost: string = (await createToken(server)).body.result.id;
  await primary.stop("kill");
  await standby.promote();
  await expect.poll(() => server.stderr()).toContain("PostgreSQL has lost commits that it had acknowledged");
  expect(server.stderr()).toMatch(/"level":"fatal",.*"writes":[1-9].*PostgreSQL has lost commits/);
  expect((await statusOf()).lost_commits).toMatchObject({ count: 1, last_at: expect.any(String) });
  expect(await readMetric(server, "signalbox_database_losses_total")).toBe(1);
  expect(await readMetric(server, "signalbox_database_lost_writes_total")).toBeGreaterThanOrEqual(1);
  const ids = async () =>
    (await send("GET", "/accounts/default/tokens")).body.result.map(({ id }: { id: string }) => id);
  await expect.poll(ids).not.toContain(lost);
  expect(await ids()).toContain(kept);
  expect((await createToken(server)).status).toBe(200);
  expect(await server.end("SIGTERM")).toBe(0);
});
