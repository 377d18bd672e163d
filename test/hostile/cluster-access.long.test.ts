/** Every check of access has the same result at the node that runs the instance and at the node that does not. */
import { once } from "node:events";
import { join } from "node:path";
import { PERMISSIONS } from "@signalbox/protocol";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { openTestPostgres, type TestPostgres } from "../support/test-postgres.ts";

const MODULES = ["../fixtures/roaming-agents.ts", "../fixtures/room-agents.ts"].map((path) =>
  join(import.meta.dirname, path),
);
const INSTANCE = "/accounts/own/agents/roamer/instances/target";

const bearer = (token: string | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };

async function statusOf(
  node: ClusterNodeProcess,
  [method, path, body]: readonly [string, string, string?],
  token: string | null,
): Promise<number> {
  const leaving = new AbortController();
  const response = await fetch(node.url + path, {
    method,
    headers: { ...bearer(token), ...(body === undefined ? {} : { "content-type": "application/json" }) },
    ...(body === undefined ? {} : { body }),
    signal: leaving.signal,
  });
  // Live tails have no end.
  leaving.abort();
  return response.status;
}

/** The status that a refused socket shows, or what a call and a message on it lead to. */
async function socketResult(node: ClusterNodeProcess, path: string, token: string | null): Promise<string> {
  const client = new RawClient(node.url + path, { token });
  try {
    await expect.poll(() => client.received.length > 0 || client.closeCode !== undefined).toBe(true);
    if (client.received.length === 0) return String(client.closeCode);
    const { success } = await client.call("add");
    client.send("hello");
    const answer = await client.next((frame) => frame.echo !== undefined || frame.error !== undefined);
    return `${success} ${answer.echo ?? "refused"}`;
  } finally {
    client.close();
  }
}

describe("tokens", () => {
  let cluster: TestCluster;
  let nodes: readonly ClusterNodeProcess[];
  let tokens: Readonly<Record<string, string | null>>;

  beforeAll(async () => {
    cluster = await startTestCluster({ nodes: 2, file: { agents: { modules: MODULES } } });
    ({ nodes } = cluster);
    const [{ api }] = nodes as [ClusterNodeProcess];
    for (const id of ["own", "other"]) await api("POST", "/accounts", { id });
    await api("POST", "/accounts/own/ai-gateway/gateways", { id: "gate", authentication: true });
    const make = async (permissions: readonly string[], account = "own", rest = {}) =>
      (await api("POST", `/accounts/${account}/tokens`, { name: "t", permissions, ...rest })).body.result;
    const bindable = PERMISSIONS.filter((name) => name.startsWith("gateway."));
    const revoked = await make(PERMISSIONS);
    tokens = {
      none: null,
      unknown: `sbx_${"x".repeat(46)}`,
      revoked: revoked.token as string,
      everything: (await make(PERMISSIONS)).token,
      reader: (await make(["agents.read"])).token,
      editor: (await make(["agents.edit"])).token,
      other: (await make(PERMISSIONS, "other")).token,
      gateway: (await make(bindable, "own", { gateway_id: "gate" })).token,
      tags: (await make(["tags.edit"])).token,
    };
    await api("DELETE", `/accounts/own/tokens/${revoked.id}`);
    for (const path of ["/agents/roamer/target/rpc/where", "/agents/room/target/rpc/where"])
      expect((await api("POST", path, [], tokens["everything"])).status).toBe(200);
  });
  afterAll(() => cluster.stop());

  /** The same at both nodes; returned by the name of the token. */
  async function everywhere<T>(
    ask: (node: ClusterNodeProcess, token: string | null) => Promise<T>,
  ): Promise<Record<string, T>> {
    const found: Record<string, T> = {};
    for (const [name, token] of Object.entries(tokens)) {
      const [first, second] = await Promise.all(nodes.map((node) => ask(node, token)));
      expect({ [name]: second }).toEqual({ [name]: first });
      found[name] = first as T;
    }
    return found;
  }

  const CASES: readonly (readonly [string, string, string?])[] = [
    ["POST", "/agents/roamer/target/rpc/count", "[]"],
    ["POST", "/agents/roamer/target/rpc/increment?account=own", "[1]"],
    ["GET", "/agents/roamer/target"],
    ["POST", "/agents/roamer/target/size", "body"],
    ["DELETE", "/agents/roamer/target"],
    ["GET", "/agents/roamer/nobody-made-this"],
    ["GET", INSTANCE],
    ["GET", `${INSTANCE}/connections`],
    ["GET", `${INSTANCE}/events`],
    ["GET", `${INSTANCE}/queue`],
    ["GET", `${INSTANCE}/schedules`],
    ["GET", `${INSTANCE}/dead-letters`],
    ["POST", `${INSTANCE}/sql`, '{"sql":"SELECT 1"}'],
    ["POST", `${INSTANCE}/dead-letters/replay`, "{}"],
    ["GET", `${INSTANCE}?unknown=1`],
    ["POST", `${INSTANCE}/move`, '{"to":"no such node"}'],
    ["GET", INSTANCE.replace("target", "nobody")],
  ];

  const titled = CASES.map((request) => ({ title: `${request[0]} ${request[1]}`, request }));
  it.each(titled)("$title", async ({ request }) => {
    const found = await everywhere((node, token) => statusOf(node, request, token));
    expect([found["none"], found["unknown"], found["revoked"]]).toEqual([401, 401, 401]);
    expect([found["gateway"], found["tags"]]).toEqual([403, 403]);
    expect(found["everything"]).not.toBe(403);
    if (request[0] !== "GET") expect(found["reader"]).toBe(403);
  });

  it("WebSockets", async () => {
    const found = await everywhere((node, token) => socketResult(node, "/agents/room/target", token));
    expect(found).toEqual({
      none: "4401",
      unknown: "4401",
      revoked: "4401",
      everything: "true hello",
      reader: "false refused",
      editor: "true hello",
      other: "true hello",
      gateway: "4403",
      tags: "4403",
    });
    const named = await everywhere((node, token) =>
      socketResult(node, "/agents/room/target?account=own", token),
    );
    expect([named["editor"], named["other"]]).toEqual(["true hello", "4403"]);
  });
});

describe("strangers, where access is public", () => {
  const LIMIT = 3;
  let postgres: TestPostgres;
  let cluster: TestCluster;
  beforeAll(async () => {
    postgres = await openTestPostgres();
    const agents = {
      modules: MODULES,
      access: "public" as const,
      newInstancesPerMinute: LIMIT,
      maxBodyBytes: 4096,
      maxMessageBytes: 4096,
    };
    cluster = await startTestCluster({ nodes: 2, postgres, file: { agents } });
    const [{ api }] = cluster.nodes as [ClusterNodeProcess];
    for (const agent of ["roamer", "room"])
      expect((await api("POST", `/agents/${agent}/there/rpc/where?account=default`, [])).status).toBe(200);
  });
  afterAll(async () => {
    await cluster.stop();
    await postgres.drop();
  });

  it("the limits of bodies and messages are the same at both nodes", async () => {
    const large = `[${"1,".repeat(4000)}1]`;
    for (const node of cluster.nodes) {
      expect(await statusOf(node, ["POST", "/agents/roamer/there/rpc/echo", large], null)).toBe(413);
      expect(await statusOf(node, ["POST", "/agents/roamer/there/size", large], null)).toBe(413);
      const client = await new RawClient(`${node.url}/agents/room/there`, { token: null }).opened();
      await client.greeted();
      client.send("x".repeat(8000));
      expect(await client.closed()).toBe(1009);
    }
  });

  it("new instances are limited at each node, over HTTP and WebSockets together, and existing ones are reached", async () => {
    let made = 0;
    const startedAt = performance.now();
    for (let i = 0; i < 40; i++) {
      const node = cluster.nodes[i % 2] as ClusterNodeProcess;
      if (i % 4 < 2) {
        const status = await statusOf(node, ["POST", `/agents/roamer/new-${i}/rpc/where`, "[]"], null);
        expect([200, 503]).toContain(status);
        if (status === 200) made += 1;
        continue;
      }
      const client = new RawClient(`${node.url}/agents/room/new-${i}`, { token: null });
      if (client.closeCode === undefined)
        await Promise.race([client.closed(), once(client.socket, "message")]);
      if (client.received.length > 0) made += 1;
      else expect(await client.closed()).toBe(1013);
      client.close();
    }
    expect(made).toBeGreaterThanOrEqual(LIMIT);
    // The bucket of a node holds a minute's worth, and is filled again while the test runs.
    const minutes = (performance.now() - startedAt) / 60_000;
    expect(made).toBeLessThanOrEqual(2 * LIMIT * (1 + minutes));
    for (const node of cluster.nodes)
      expect(await statusOf(node, ["POST", "/agents/roamer/there/rpc/where", "[]"], null)).toBe(200);
  });
});
