/** The node of an instance loses PostgreSQL, and others do not; clients still ask it, and an operator stops it. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { TcpProxy } from "../chaos/network/tcp-proxy.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho, codeOf } from "../support/send-request.ts";

const ROAMING_AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");
let cluster: TestCluster;
let proxy: TcpProxy;
let cut: ClusterNodeProcess;
let other: ClusterNodeProcess;

beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1, file: { agents: { modules: [ROAMING_AGENTS] } } });
  const url = new URL(cluster.postgres.url);
  proxy = await TcpProxy.open(Number(url.port));
  url.port = String(proxy.port);
  cut = await cluster.join({ name: "cut", databaseUrl: url.href, mayDie: true });
  [other] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(async () => {
  await cluster.stop();
  await proxy.close();
});

const call = (node: ClusterNodeProcess, name: string, method: string) =>
  node.api("POST", `/agents/roamer/${name}/rpc/${method}`, []);

/** An instance that the node runs. */
async function nameAt(node: ClusterNodeProcess): Promise<string> {
  for (let i = 0; ; i++) if ((await call(node, `c${i}`, "where")).body.result === node.pid) return `c${i}`;
}

it("what a node without PostgreSQL would run is refused as not run, and clients find another node", async () => {
  const name = await nameAt(cut);
  expect((await call(cut, name, "increment")).body.result).toBe(1);
  proxy.hold("up", "down");
  // Those that begin before the node knows that it is cut off end with 3012: their outcome is unknown.
  let unknown = 0;
  await expect
    .poll(async () => {
      const code = codeOf(await call(cut, name, "increment"));
      if (code === 3012) unknown += 1;
      return code;
    })
    .toBe(7013);
  const refused = await call(cut, name, "increment");
  expect([refused.status, codeOf(refused), refused.headers.get("retry-after")]).toEqual([503, 7013, "1"]);
  await expect.poll(async () => (await call(other, name, "increment")).status).toBe(200);
  proxy.heal();
  const { result } = (await call(other, name, "count")).body;
  expect(result).toBeGreaterThanOrEqual(2);
  expect(result).toBeLessThanOrEqual(2 + unknown);
  await expect.poll(async () => (await call(cut, name, "count")).body.result).toBe(result);
});

it("a node without PostgreSQL stops when it is told to", async () => {
  const name = await nameAt(cut);
  proxy.hold("up", "down");
  // Its answer may be cut off.
  void call(cut, name, "increment").catch(() => undefined);
  // Of the gateway: it cannot be logged.
  expect((await callEcho(cut)).status).toBe(200);
  expect(await cut.end("SIGTERM")).toBe(1);
  expect((await call(other, name, "count")).status).toBe(200);
});
