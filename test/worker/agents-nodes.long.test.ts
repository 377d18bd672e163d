/** The published `agents` package with its own client on two nodes: clients of both see one agent, which moves, and is lost. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { waitUntil } from "../support/wait-until.ts";
import { connectAgent, type TestClient } from "./support/agent-client.ts";
import { PROGRAMS } from "./support/worker-server.ts";

interface CounterState {
  readonly count: number;
  readonly log: readonly string[];
}

let cluster: TestCluster;
beforeAll(async () => {
  cluster = await startTestCluster({
    file: { agents: { access: "worker", idleTimeoutMs: 100 } },
    args: ["--worker", join(PROGRAMS, "agents/src/server.ts")],
    env: { SIGNALBOX_NO_REEXEC: "1" },
  });
});
afterAll(() => cluster.stop());

const clients: TestClient<CounterState>[] = [];
afterAll(() => {
  for (const client of clients) client.close();
});

function nodeAt(node: number): ClusterNodeProcess {
  const found = cluster.nodes[node];
  if (found === undefined) throw new Error("no such node");
  return found;
}

async function connect(node: number, name: string): Promise<TestClient<CounterState>> {
  const client = connectAgent<CounterState>(nodeAt(node), "Counter", name);
  clients.push(client);
  await client.ready;
  return client;
}

/** The node that owns an agent, as the operators see it. */
async function ownerOf(name: string): Promise<{ readonly id: string; readonly node: number }> {
  const { body } = await nodeAt(0).api("GET", `/accounts/default/agents/counter/instances?search=${name}`);
  const [entry] = (body as { result: { name: string; node: string }[] }).result;
  if (entry === undefined) throw new Error(`there is no agent ${name}`);
  return { id: entry.name, node: entry.node === "node-1" ? 0 : 1 };
}

test("clients of both nodes see one state, calls and streams of one agent", async () => {
  const [near, far] = [await connect(0, "shared"), await connect(1, "shared")];
  expect(await near.call("add", 2)).toBe(2);
  expect(await far.call("add", 3)).toBe(5);
  for (const client of [near, far]) {
    await expect.poll(() => client.state?.count).toBe(5);
    const chunks: unknown[] = [];
    expect(await client.stream("countTo", [3], (chunk) => chunks.push(chunk))).toBe("done");
    expect(chunks).toEqual([1, 2, 3]);
    await expect(client.call("fail")).rejects.toThrow("as asked");
  }
  expect(await far.call("visitOther", "other", "a")).toEqual(["a"]);
  expect(await near.call("visitOther", "other", "b")).toEqual(["a", "b"]);
});

test("an agent that is moved keeps its clients, without a new connection", async () => {
  const [one, two] = [await connect(0, "moving"), await connect(1, "moving")];
  expect(await one.call("add", 1)).toBe(1);
  for (let round = 0; round < 3; round += 1) {
    const { id, node } = await ownerOf("moving");
    const path = `/accounts/default/agents/counter/instances/${id}/move`;
    const moved = await nodeAt(node).api("POST", path, { to: `node-${2 - node}` });
    expect(moved.status).toBe(200);
    expect((await ownerOf("moving")).node).toBe(1 - node);
    expect(await two.call("add", 1)).toBe(2 * round + 2);
    expect(await one.call("add", 1)).toBe(2 * round + 3);
    for (const client of [one, two]) await expect.poll(() => client.state?.count).toBe(2 * round + 3);
  }
  expect([one.openCount, two.openCount]).toEqual([1, 1]);
});

test("when the owner is killed in the middle of calls, the clients of the other node come back to what was answered", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const client = await connect(0, "lost");
  const { id } = await ownerOf("lost");
  const path = `/accounts/default/agents/counter/instances/${id}/move`;
  // Nodes look for new ones twice a second.
  await waitUntil(
    () => nodeAt(0).api("POST", path, { to: "node-3" }),
    ({ status }) => status === 200,
    50,
  );
  let answered = 0;
  let isLost = false;
  const calls = (async () => {
    while (!isLost) answered = Number(await client.call("add", 1));
  })().catch(() => undefined);
  await expect.poll(() => answered).toBeGreaterThan(3);
  await third.end("SIGKILL");
  isLost = true;
  const survivor = await connect(1, "lost");
  const count = Number(await survivor.call("add", 0));
  // The last call may have been run without an answer.
  expect(count - answered).toBeGreaterThanOrEqual(0);
  expect(count - answered).toBeLessThanOrEqual(1);
  await expect.poll(() => client.state?.count).toBe(count);
  client.close();
  await calls;
});
