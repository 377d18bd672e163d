/** One node of two loses PostgreSQL in a way that no error reports: packets are lost, and connections stay open. */
import { afterAll, beforeAll, expect, it } from "vitest";
import { TcpProxy } from "../chaos/network/tcp-proxy.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { callEcho, codeOf, createToken } from "../support/send-request.ts";

let cluster: TestCluster;
let proxy: TcpProxy;
let cut: ClusterNodeProcess;
let other: ClusterNodeProcess;

beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 1 });
  const url = new URL(cluster.postgres.url);
  proxy = await TcpProxy.open(Number(url.port));
  url.port = String(proxy.port);
  const stale = { maxStaleMs: 15_000 };
  cut = await cluster.join({ name: "cut", databaseUrl: url.href, mayDie: true, cluster: stale });
  [other] = cluster.nodes as [ClusterNodeProcess];
});
afterAll(async () => {
  await cluster.stop();
  await proxy.close();
});

interface NodeRow {
  readonly name: string;
  readonly state: string;
  readonly link: string;
}

async function nodesOf(node: ClusterNodeProcess): Promise<NodeRow[]> {
  return (await node.api("GET", "/cluster/nodes")).body.result;
}

const statusOf = async (node: ClusterNodeProcess) => (await node.api("GET", "/cluster")).body.result;

it("lists the nodes with their links, at each of them", async () => {
  for (const node of [cut, other]) {
    await expect
      .poll(async () => (await nodesOf(node)).map(({ name, state }) => [name, state]))
      .toEqual([
        ["node-1", "up"],
        ["cut", "up"],
      ]);
    await expect
      .poll(async () => (await nodesOf(node)).map(({ link }) => link).sort())
      .toEqual(["self", "up"]);
  }
  expect((await nodesOf(cut)).find(({ link }) => link === "self")?.name).toBe("cut");
});

it("a node in a black hole answers calls from memory, then 503 with Retry-After; the other node serves, and everything heals", async () => {
  // What the call needs must be in memory.
  expect((await callEcho(cut)).status).toBe(200);
  const guardrails = "/accounts/default/ai-gateway/guardrails";
  const zebra = { id: "zebra", type: "words", words: ["zebra"], action: "block" };
  await other.api("PUT", guardrails, { rules: [zebra] });
  proxy.hold("up", "down");
  expect((await callEcho(cut)).status).toBe(200);
  expect((await callEcho(cut, "a zebra")).status).toBe(424);
  // The other node declares it dead, and its own writes do not wait for it.
  await expect.poll(async () => (await nodesOf(other)).map(({ name }) => name)).toEqual(["node-1"]);
  expect((await createToken(other)).status).toBe(200);
  const gnu = { ...zebra, id: "gnu", words: ["gnu"] };
  expect((await other.api("PUT", guardrails, { rules: [zebra, gnu] })).status).toBe(200);
  const ready = () => cut.api("GET", "/readyz", undefined, null);
  await expect.poll(async () => (await ready()).text).toContain("database: PostgreSQL cannot be reached");
  await expect.poll(async () => (await callEcho(cut)).status).toBe(503);
  const refused = await callEcho(cut);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([503, "5"]);
  expect(refused.text).toContain("has not reached its database for too long");
  const managed = await createToken(cut);
  expect([managed.status, codeOf(managed), managed.headers.get("retry-after")]).toEqual([503, 7017, "5"]);
  // Liveness never depends on PostgreSQL, and operators see why.
  expect((await cut.api("GET", "/healthz", undefined, null)).status).toBe(200);
  expect(await statusOf(cut)).toMatchObject({
    is_stale: true,
    max_stale_ms: 15_000,
    problems: expect.arrayContaining(["database: PostgreSQL cannot be reached"]),
  });
  const metrics = await cut.api("GET", "/metrics");
  expect(metrics.text).toContain('signalbox_database_stale{node="cut"} 1');
  expect(metrics.text).toMatch(/signalbox_http_requests_total\{.*node="cut"/);
  expect((await callEcho(other)).status).toBe(200);

  proxy.heal();
  await expect.poll(async () => (await callEcho(cut)).status).toBe(200);
  // Whoever gets an answer gets it under the rules that were changed meanwhile.
  expect((await callEcho(cut, "a gnu")).status).toBe(424);
  expect((await other.api("PUT", guardrails, { rules: [] })).status).toBe(200);
  await expect.poll(async () => (await ready()).status).toBe(200);
  expect((await createToken(cut)).status).toBe(200);
  await expect.poll(async () => (await nodesOf(other)).map(({ name }) => name)).toEqual(["node-1", "cut"]);
  expect([cut.child.exitCode, other.child.exitCode]).toEqual([null, null]);
});

it("writes that need a database in a black hole fail within a bound, and store nothing or say that the outcome is unknown", async () => {
  const before = (await other.api("GET", "/accounts/default/tokens")).body.result.length;
  proxy.hold("down");
  const answers = await Promise.all([createToken(cut), createToken(cut), createToken(cut)]);
  for (const answer of answers)
    // 7017: a pause of the machine has made the node stale before it saw the request.
    expect([answer.status, codeOf(answer)]).toEqual([503, expect.toBeOneOf([7013, 7014, 7017])]);
  proxy.heal();
  await expect.poll(async () => (await cut.api("GET", "/readyz", undefined, null)).status).toBe(200);
  const unknown = answers.filter((answer) => codeOf(answer) === 7014).length;
  const after = (await other.api("GET", "/accounts/default/tokens")).body.result.length;
  expect(after - before).toBeLessThanOrEqual(unknown);
});

it("calls go on at both nodes while PostgreSQL is killed and restarted", async () => {
  const third = await cluster.join({ name: "third" });
  let isDone = false;
  const failed: number[] = [];
  const calls = [0, 0];
  const client = async (node: ClusterNodeProcess, index: number) => {
    while (!isDone) {
      const { status } = await callEcho(node);
      if (status === 200) calls[index] = (calls[index] ?? 0) + 1;
      else failed.push(status);
    }
  };
  const clients = [client(third, 0), client(other, 1)];
  try {
    for (let i = 0; i < 3; i++) {
      const before = calls.map((count) => count + 20);
      await expect.poll(() => calls.every((count, index) => count > (before[index] ?? 0))).toBe(true);
      await cluster.postgres.stop(i % 2 === 0 ? "kill" : "fast");
      const during = calls.map((count) => count + 20);
      await expect.poll(() => calls.every((count, index) => count > (during[index] ?? 0))).toBe(true);
      await cluster.postgres.start();
    }
    for (const node of [third, other])
      await expect.poll(async () => (await createToken(node)).status).toBe(200);
  } finally {
    isDone = true;
    await Promise.all(clients);
  }
  expect(failed).toEqual([]);
  expect([cut, third, other].map(({ child }) => child.exitCode)).toEqual([null, null, null]);
});
