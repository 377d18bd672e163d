/** What operators look at, on several nodes: the audit log, usage by whom, search, export and replay. Every node shows the same. */
import { Client } from "pg";
import { afterAll, beforeAll, expect, it } from "vitest";
import { checkChain } from "../../packages/signalbox/src/cli/audit-chain.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { ROOT_TOKEN } from "../support/root-token.ts";
import { sendRequest } from "../support/send-request.ts";

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

async function download(node: ClusterNodeProcess, path: string): Promise<string> {
  const response = await fetch(node.url + path, { headers: { authorization: `Bearer ${ROOT_TOKEN}` } });
  expect(response.status).toBe(200);
  return response.text();
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
  const writes = Array.from({ length: 24 }, (_, i) => {
    const node = nodes[i % 2 === 0 ? 0 : 1];
    const resource = { resource_type: "worker", resource_id: `w${i}` };
    return [
      node.api("POST", GATEWAYS, { id: `g${i}` }),
      node.api("PUT", "/accounts/default/tags", { ...resource, tags: { i: `${i}` } }),
      node.api("POST", GATEWAYS, { id: "default" }),
    ];
  }).flat();
  const statuses = (await Promise.all(writes)).map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(48);
  const [one, two] = [await exported(nodes[0]), await exported(nodes[1])];
  expect(two).toEqual(one);
  expect(one.map(({ seq }) => seq)).toEqual(one.map((_, i) => i + 1));
  for (let i = 0; i < 24; i++) {
    expect(one.filter(isEntryOf(`g${i}`))).toHaveLength(1);
    expect(one.filter(isEntryOf(`worker/w${i}`))).toHaveLength(1);
  }
  expect(one.filter(({ action }) => action.outcome === "refused")).toHaveLength(24);
});

it("usage by whom, search, export and replay include the calls of all nodes", async () => {
  const { body } = await nodes[0].api("POST", "/accounts/default/tokens", {
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
    const usage = await node.api("GET", `${AI}/usage?group_by=owner,user`);
    expect(usage.body.result).toMatchObject([
      { owner: "ada", user: "u1", calls: 2 },
      { owner: "ada", user: "u2", calls: 1 },
    ]);
    const found = await node.api("GET", `${AI}/logs?q=QUICK`);
    expect(found.body.result).toMatchObject([
      { id: ids[2], prompt: "another quick one" },
      { id: ids[0], prompt: "the quick brown fox" },
    ]);
    const lines = (await download(node, `${AI}/logs/export?bodies=true`)).trimEnd().split("\n");
    expect(lines.map((line) => (JSON.parse(line) as { id: string }).id).toSorted()).toEqual(ids.toSorted());
    const near = await node.api("GET", `${GATEWAYS}/default/logs/${ids[1]}/neighbours`);
    expect(near.body.result).toEqual({ older: ids[0], newer: ids[2] });
  }
  // The call was made at the other node.
  const replay = await nodes[1].api("POST", `${GATEWAYS}/default/logs/${ids[0]}/replay`, {}, token);
  expect(replay.body.result).toMatchObject({ status: 200 });
  expect((await nodes[0].api("GET", `${AI}/logs?q=quick`)).body.result).toHaveLength(3);
});

it("a killed node leaves no change without an entry; another node completes its claims", async () => {
  const third = await cluster.join({ name: "node-3" });
  const create = async (i: number) => {
    const answer = await third.api("POST", GATEWAYS, { id: `k${i}` }).catch(() => null);
    if (i === 5) void third.kill();
    return answer;
  };
  await Promise.all(Array.from({ length: 40 }, (_, i) => create(i)));
  await third.kill();
  const client = new Client({ connectionString: cluster.postgres.url });
  await client.connect();
  // As if the time had passed after which no request is running any more.
  await client.query("UPDATE audit_claim SET at = 1");
  await cluster.join({ name: "node-4" });
  expect((await client.query("SELECT id FROM audit_claim")).rows).toEqual([]);
  await client.end();
  const { body } = await nodes[0].api("GET", `${GATEWAYS}?per_page=100&search=k`);
  const made = (body.result as { id: string }[]).map(({ id }) => id).filter((id) => /^k\d+$/.test(id));
  expect(made.length).toBeGreaterThan(0);
  const entries = await exported(nodes[1]);
  expect(made.filter((id) => !entries.some(isEntryOf(id)))).toEqual([]);
}, 400_000);
