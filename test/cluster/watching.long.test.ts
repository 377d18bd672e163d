/** What operators look at, on several nodes: the audit log, usage by whom, search, export and replay. Every node shows the same. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkChain } from "../../packages/signalbox/src/cli/audit-chain.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { type Answer, sendRequest } from "../support/send-request.ts";
import { waitUntil } from "../support/wait-until.ts";

const AI = "/accounts/default/ai-gateway";
const GATEWAYS = `${AI}/gateways`;
const LOG = "/accounts/default/audit_logs";

let cluster: TestCluster;
let nodes: readonly [ClusterNodeProcess, ClusterNodeProcess];
beforeAll(async () => {
  // Rows are found because reads ask the other node for them, not because time passes.
  cluster = await startTestCluster({ file: { gateway: { logs: { flushIntervalMs: 10_000 } } } });
  nodes = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(() => cluster.stop());

/** On a busy machine a node may not answer in time; a client tries again. */
const request = (node: ClusterNodeProcess, ...args: Parameters<ClusterNodeProcess["api"]>) =>
  waitUntil(
    () => node.api(...args),
    ({ status }) => status < 500,
    100,
  );

async function read(node: ClusterNodeProcess, path: string): Promise<Answer["body"]> {
  const { status, body } = await request(node, "GET", path);
  expect([status, body]).toEqual([200, body]);
  return body.result;
}

async function download(node: ClusterNodeProcess, path: string): Promise<string> {
  const { status, text } = await request(node, "GET", path);
  expect([status, text]).toEqual([200, text]);
  return text;
}

interface Entry {
  readonly seq: number;
  readonly action: { readonly outcome: string };
  readonly resource: { readonly id: string };
  readonly request: { readonly id?: string } | null;
}

const isEntryOf = (id: string) => (entry: Entry) => entry.resource.id === id || entry.request?.id === id;

/** The entries as one node exports them; the chain is checked. */
async function exported(node: ClusterNodeProcess): Promise<Entry[]> {
  const lines = (await download(node, `${LOG}/export`)).trimEnd().split("\n");
  expect((await checkChain(lines, undefined)).problem).toBeNull();
  return lines.map((line) => JSON.parse(line) as Entry);
}

it("writes at all nodes at the same time form one chain, which every node shows", async () => {
  const write = async (node: ClusterNodeProcess, i: number) => {
    const tags = { resource_type: "worker", resource_id: `w${i}`, tags: { i: `${i}` } };
    // 409: the first try was stored, but not answered.
    expect([200, 409]).toContain((await request(node, "POST", GATEWAYS, { id: `g${i}` })).status);
    expect((await request(node, "PUT", "/accounts/default/tags", tags)).status).toBe(200);
    expect((await request(node, "POST", GATEWAYS, { id: "default" })).status).toBe(409);
  };
  await Promise.all(Array.from({ length: 12 }, (_, i) => write(nodes[i % 2 === 0 ? 0 : 1], i)));
  const [one, two] = [await exported(nodes[0]), await exported(nodes[1])];
  expect(two).toEqual(one);
  expect(one.map(({ seq }) => seq)).toEqual(one.map((_, i) => i + 1));
  const stored = one.filter(({ action }) => action.outcome !== "refused" && action.outcome !== "failed");
  for (let i = 0; i < 12; i++) {
    expect([i, stored.filter(isEntryOf(`g${i}`)).length]).toEqual([i, 1]);
    expect(stored.filter(isEntryOf(`worker/w${i}`)).length).toBeGreaterThan(0);
  }
  expect(one.filter(({ action }) => action.outcome === "refused").length).toBeGreaterThanOrEqual(12);
});

it("usage by whom, search, export and replay include the calls of all nodes", async () => {
  const { body } = await request(nodes[0], "POST", "/accounts/default/tokens", {
    name: "ada's key",
    owner: "ada",
    permissions: ["gateway.run", "gateway.read"],
  });
  const { token } = body.result as { token: string };
  const ids: string[] = [];
  for (const [i, text] of ["the quick brown fox", "a lazy dog", "another quick one"].entries()) {
    const { headers, status } = await sendRequest(
      nodes[i % 2 === 0 ? 0 : 1],
      "POST",
      "/v1/default/default/echo/chat/completions",
      { model: "echo", messages: [{ role: "user", content: text }] },
      {
        authorization: "Bearer key-of-a-provider",
        "gw-aig-authorization": `Bearer ${token}`,
        "gw-aig-metadata": JSON.stringify({ user: i === 1 ? "u2" : "u1" }),
      },
    );
    expect(status).toBe(200);
    ids.push(headers.get("gw-aig-log-id") ?? "");
  }
  for (const node of nodes) {
    expect(await read(node, `${AI}/usage?group_by=owner,user`)).toMatchObject([
      { owner: "ada", user: "u1", calls: 2 },
      { owner: "ada", user: "u2", calls: 1 },
    ]);
    expect(await read(node, `${AI}/logs?q=QUICK`)).toMatchObject([
      { id: ids[2], prompt: "another quick one" },
      { id: ids[0], prompt: "the quick brown fox" },
    ]);
    const lines = (await download(node, `${AI}/logs/export?bodies=true`)).trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted()).toEqual(ids.toSorted());
    expect(await read(node, `${GATEWAYS}/default/logs/${ids[1]}/neighbours`)).toEqual({
      older: ids[0],
      newer: ids[2],
    });
  }
  // The call was made at the other node.
  const replay = await request(nodes[1], "POST", `${GATEWAYS}/default/logs/${ids[0]}/replay`, {}, token);
  expect(replay.body.result).toMatchObject({ status: 200 });
  expect((await read(nodes[0], `${AI}/logs?q=quick`)).length).toBeGreaterThanOrEqual(3);
});

it("a killed node leaves no change without an entry; another node completes its claims", async () => {
  const third = await cluster.join({ name: "node-3", mayDie: true });
  const create = async (i: number) => {
    const answer = await third.api("POST", GATEWAYS, { id: `k${i}` }).catch(() => null);
    if (i === 5) void third.kill();
    return answer;
  };
  await Promise.all(Array.from({ length: 20 }, (_, i) => create(i)));
  await third.kill();
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  // As if the time had passed after which no request is running any more.
  await client.query("UPDATE audit_claim SET at = at - 1000000");
  await cluster.join({ name: "node-4" });
  expect((await client.query("SELECT id FROM audit_claim")).rows).toEqual([]);
  await client.end();
  const made = ((await read(nodes[0], `${GATEWAYS}?per_page=100&search=k`)) as { id: string }[])
    .map(({ id }) => id)
    .filter((id) => /^k\d+$/.test(id));
  expect(made.length).toBeGreaterThan(0);
  const entries = await exported(nodes[1]);
  expect(made.filter((id) => !entries.some(isEntryOf(id)))).toEqual([]);
});
