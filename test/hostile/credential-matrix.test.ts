/**
 * The routes that OpenAPI does not list, each with every kind of credential: agents over HTTP, calls and WebSockets,
 * a gateway with authentication, metrics and description of a reachable server, and the dashboard's sessions.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { PERMISSIONS } from "@signalbox/protocol";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";

const ALL: readonly string[] = PERMISSIONS;
const HOUR = 60 * 60 * 1000;

let server: TestServer;
let now = Date.now();
let tokens: Readonly<Record<string, string | null>>;

beforeAll(async () => {
  server = await startTestServer({
    // The listener's address does not matter here; this setting makes the server count as reachable from other hosts.
    host: "0.0.0.0",
    clock: { now: () => now },
    file: { agents: { modules: [TEST_AGENTS] } },
  });
  for (const id of ["own", "other"]) await server.api("POST", "/accounts", { id });
  for (const id of ["mine", "theirs"])
    await server.api("POST", "/accounts/own/ai-gateway/gateways", { id, authentication: true });
  await server.api("POST", "/accounts/other/ai-gateway/gateways", { id: "mine", authentication: true });
  const bindable = ALL.filter((name) => name.startsWith("gateway.") || name === "tokens.edit");
  const revoked = await server.api("POST", "/accounts/own/tokens", { name: "revoked", permissions: ALL });
  tokens = {
    anonymous: null,
    unknown: `sbx_${"x".repeat(46)}`,
    expired: await server.token(ALL, { account: "own", expires_at: new Date(now + HOUR).toISOString() }),
    revoked: revoked.body.result.token,
    everything: await server.token(ALL, { account: "own" }),
    "all permissions in another account": await server.token(ALL, { account: "other" }),
    bound: await server.token(bindable, { account: "own", gateway_id: "mine" }),
    "bound to another": await server.token(bindable, { account: "own", gateway_id: "theirs" }),
    ...Object.fromEntries(
      await Promise.all(
        ALL.map(async (permission) => [permission, await server.token([permission], { account: "own" })]),
      ),
    ),
    root: ROOT_TOKEN,
  };
  await server.api("DELETE", `/accounts/own/tokens/${revoked.body.result.id}`);
  now += 2 * HOUR;
});
afterAll(() => server.stop());

/** The expected result per credential; `others` are all credentials that are not named. */
async function expectStatuses(
  request: (token: string | null) => Promise<number>,
  expected: Readonly<Record<string, number>> & { readonly others: number },
): Promise<void> {
  const wanted: Record<string, number> = {};
  const given: Record<string, number> = {};
  for (const [name, token] of Object.entries(tokens)) {
    const isNoCredential = token === null || ["unknown", "expired", "revoked"].includes(name);
    wanted[name] = expected[name] ?? (isNoCredential ? 401 : expected.others);
    given[name] = await request(token);
  }
  expect(given).toEqual(wanted);
}

const statusOf = async (method: string, path: string, headers: Record<string, string>, body?: string) => {
  const response = await fetch(server.url.replace("0.0.0.0", "127.0.0.1") + path, {
    method,
    headers,
    redirect: "manual",
    ...(body === undefined ? {} : { body }),
  });
  await response.arrayBuffer();
  return response.status;
};
const bearer = (token: string | null): Record<string, string> =>
  token === null ? {} : { authorization: `Bearer ${token}` };

describe("agents", () => {
  const path = "/agents/counter/x";
  // Instances of the root token belong to `default`; other tokens reach their own account.
  const seen = { everything: 200, "all permissions in another account": 200, "agents.edit": 200, root: 200 };

  it("agents can be called with agents.edit", () =>
    expectStatuses((token) => statusOf("POST", `${path}/rpc/read`, bearer(token), "[]"), {
      ...seen,
      others: 403,
    }));

  it("a token in the URL gives no wider access to calls", () =>
    expectStatuses(
      (token) => statusOf("POST", `${path}/rpc/read${token === null ? "" : `?token=${token}`}`, {}, "[]"),
      { ...seen, others: 403 },
    ));

  it("instances of another account cannot be called by naming the account", () =>
    expectStatuses(
      (token) =>
        statusOf("POST", `${path}/rpc/read`, { ...bearer(token), "signalbox-account": "other" }, "[]"),
      { root: 200, "all permissions in another account": 200, others: 403 },
    ));

  it("WebSockets can be opened with agents.read or agents.edit", () =>
    expectStatuses(
      async (token) => {
        const query = token === null ? "" : `?token=${token}`;
        const address = `${server.url.replace("0.0.0.0", "127.0.0.1")}${path}${query}`;
        const client = new RawClient(address, { token: null });
        try {
          await expect.poll(() => client.received.length > 0 || client.closeCode !== undefined).toBe(true);
          // Close codes of refusals are 4000 plus the status.
          return client.received.length > 0 ? 200 : (client.closeCode ?? 0) - 4000;
        } finally {
          client.close();
        }
      },
      { ...seen, "agents.read": 200, others: 403 },
    ));
});

describe("a gateway with authentication", () => {
  const call = (gateway: string) => (token: string | null) =>
    statusOf(
      "GET",
      `/v1/${gateway}/echo/models`,
      token === null ? {} : { "gw-aig-authorization": `Bearer ${token}` },
    );

  it("a call needs gateway.run of the account, unbound or bound to this gateway", () =>
    expectStatuses(call("own/mine"), {
      everything: 200,
      bound: 200,
      "gateway.run": 200,
      root: 200,
      others: 401,
    }));

  it("a token of another gateway is refused", () =>
    expectStatuses(call("own/theirs"), {
      everything: 200,
      "bound to another": 200,
      "gateway.run": 200,
      root: 200,
      others: 401,
    }));

  it("a token of another account is refused, even if it names this account", () =>
    expectStatuses(call("other/mine"), {
      "all permissions in another account": 200,
      root: 200,
      others: 401,
    }));
});

describe("a server reachable from other hosts", () => {
  it("metrics are shown to the operator only", () =>
    expectStatuses((token) => statusOf("GET", "/metrics", bearer(token)), { root: 200, others: 403 }));

  it("the description is shown with any token", () =>
    expectStatuses((token) => statusOf("GET", "/openapi.json", bearer(token)), { others: 200 }));
});

describe("the dashboard", () => {
  const own = () => server.url.replace("0.0.0.0", "127.0.0.1");

  it("every valid token opens a session, and no other credential does", () =>
    expectStatuses(
      (token) =>
        statusOf(
          "POST",
          "/dashboard/session",
          { origin: own(), "content-type": "application/json" },
          JSON.stringify({ token: token ?? "none" }),
        ),
      { others: 200 },
    ));

  it("the first commands are shown with any token", () =>
    expectStatuses((token) => statusOf("GET", "/dashboard/first-commands", bearer(token)), { others: 200 }));

  it("a request with another Origin or none changes nothing", async () => {
    const body = JSON.stringify({ token: ROOT_TOKEN });
    for (const origin of ["http://evil.example", "null", `${own()}1`]) {
      expect(await statusOf("POST", "/dashboard/session", { origin }, body)).toBe(403);
      expect(await statusOf("DELETE", "/dashboard/session", { origin })).toBe(403);
    }
  });
});
