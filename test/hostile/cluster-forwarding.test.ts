/** A client cannot pretend to be a node: what nodes send each other does not exist in HTTP. */
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { readAnswer } from "../support/send-request.ts";

const ROAMING_AGENTS = join(import.meta.dirname, "../fixtures/roaming-agents.ts");

let cluster: TestCluster;
let nodes: ClusterNodeProcess[];
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { agents: { modules: [ROAMING_AGENTS] } } });
  nodes = [...cluster.nodes];
  for (const { api } of nodes) await api("POST", "/agents/roamer/target/rpc/where", []);
});
afterAll(() => cluster.stop());

const send = async (
  node: ClusterNodeProcess,
  method: string,
  path: string,
  headers: Record<string, string>,
) =>
  readAnswer(await fetch(node.url + path, { method, headers, ...(method === "POST" ? { body: "[]" } : {}) }));

/** Names of headers that a proxy between nodes might use, and those of other products. */
const HEADERS: Record<string, string> = {
  "x-signalbox-forwarded": "1",
  "signalbox-forwarded": "node-1",
  "signalbox-account": "default",
  "x-signalbox-node": "1",
  "x-forwarded-for": "127.0.0.1",
  forwarded: "for=127.0.0.1;by=node-1",
  "x-internal": "1",
  "agents.request": "1",
};

it("headers that claim to come from a node give no access", async () => {
  for (const node of nodes) {
    expect((await send(node, "POST", "/agents/roamer/target/rpc/increment", HEADERS)).status).toBe(401);
    expect((await send(node, "GET", "/agents/roamer/target", HEADERS)).status).toBe(401);
    const path = "/accounts/default/agents/roamer/instances/target";
    expect((await send(node, "GET", path, HEADERS)).status).toBe(401);
    expect((await send(node, "DELETE", path, HEADERS)).status).toBe(401);
  }
});

it.each([
  "agents.deliver",
  "agents.request",
  "agents.call",
  "agents.manage",
  "agents.residents",
  "agents.fetch",
])("the service %s of the link has no path", async (name) => {
  for (const node of nodes)
    for (const path of [
      `/${name}`,
      `/agents/${name}/target`,
      `/cluster/${name}`,
      `/accounts/default/${name}`,
    ]) {
      const { status } = await send(node, "POST", path, HEADERS);
      expect([401, 404, 405]).toContain(status);
    }
});

it("a token of one account does not reach instances of another through the other node", async () => {
  const [first] = nodes as [ClusterNodeProcess, ClusterNodeProcess];
  await first.api("POST", "/accounts", { id: "other", name: "other" });
  const made = await first.api("POST", "/accounts/other/tokens", { name: "t", permissions: ["agents.edit"] });
  const { token } = made.body.result as { token: string };
  const headers: Record<string, string> = { ...HEADERS, authorization: `Bearer ${token}` };
  for (const node of nodes) {
    const path = "/accounts/default/agents/roamer/instances/target";
    expect((await send(node, "GET", path, headers)).status).toBe(403);
    expect(
      (await send(node, "POST", "/agents/roamer/target/rpc/count?account=default", headers)).status,
    ).toBe(403);
    expect((await send(node, "GET", "/agents/roamer/target?account=default", headers)).status).toBe(403);
  }
  const { "signalbox-account": account, ...plain } = headers;
  expect(account).toBe("default");
  // The instance of that name in its own account is another one.
  for (const node of nodes)
    expect((await send(node, "POST", "/agents/roamer/target/rpc/count", plain)).body.result).toBe(0);
});
