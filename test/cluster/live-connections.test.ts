/** What a token or session has opened at one node ends when it is revoked, disabled, rotated or logged out at another. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { afterAll, beforeAll, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { type ClusterNodeProcess, startTestCluster, type TestCluster } from "../support/cluster.ts";
import { waitUntil } from "../support/wait-until.ts";

const TOKENS = "/accounts/default/tokens";
let cluster: TestCluster;
let a: ClusterNodeProcess;
let b: ClusterNodeProcess;
beforeAll(async () => {
  cluster = await startTestCluster({ nodes: 2, file: { agents: { modules: [TEST_AGENTS] } } });
  [a, b] = cluster.nodes as [ClusterNodeProcess, ClusterNodeProcess];
});
afterAll(() => cluster.stop());

interface Made {
  readonly id: string;
  readonly token: string;
}

async function make(): Promise<Made> {
  const permissions = ["agents.edit", "tags.read"];
  return (await a.api("POST", TOKENS, { name: "t", permissions })).body.result as Made;
}

/** A WebSocket at the other node. */
async function connect(headers: { token: string } | { cookie: string }): Promise<RawClient> {
  const url = `${b.url}/agents/counter/watched`;
  const options = "token" in headers ? headers : { token: null, headers: { ...headers, origin: b.url } };
  const client = await new RawClient(url, options).opened();
  await client.greeted();
  return client;
}

/** A stream of events at the other node. Resolves when it has begun; `ended` is true if it ended completely. */
async function follow({ token }: Made): Promise<{ readonly ended: Promise<boolean> }> {
  const request = httpRequest(`${b.url}/accounts/default/tags/changes`, {
    agent: false,
    headers: { accept: "text/event-stream", authorization: `Bearer ${token}` },
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  response.on("error", () => undefined).resume();
  return {
    ended: new Promise((resolve) => response.once("close", () => resolve(response.complete))),
  };
}

it.each([
  ["revoked", (id: string) => a.api("DELETE", `${TOKENS}/${id}`)],
  ["disabled", (id: string) => a.api("PATCH", `${TOKENS}/${id}`, { disabled: true })],
  ["rotated without grace", (id: string) => a.api("POST", `${TOKENS}/${id}/rotate`, { grace_s: 0 })],
  [
    "set to expire",
    (id: string) =>
      // Refused if the time has passed before the request arrives.
      waitUntil(
        () => a.api("PATCH", `${TOKENS}/${id}`, { expires_at: new Date(Date.now() + 5000).toISOString() }),
        ({ status }) => status === 200,
      ),
  ],
])("a token that is %s", async (_title, end) => {
  const made = await make();
  const [socket, stream, kept] = [await connect(made), await follow(made), await connect(await make())];
  expect((await end(made.id)).status).toBe(200);
  expect(await socket.closed()).toBe(4401);
  expect(await stream.ended).toBe(true);
  expect((await kept.call("read")).success).toBe(true);
  kept.close();
});

it("a session that is logged out", async () => {
  const { token } = await make();
  const origin = a.url;
  const login = await fetch(`${a.url}/dashboard/session`, {
    method: "POST",
    headers: { origin },
    body: JSON.stringify({ token }),
  });
  const cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  const socket = await connect({ cookie });
  await fetch(`${a.url}/dashboard/session`, { method: "DELETE", headers: { origin, cookie } });
  expect(await socket.closed()).toBe(4401);
});
