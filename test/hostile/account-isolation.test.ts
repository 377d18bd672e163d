/**
 * Instances of one account are not reachable for tokens, webhooks and agents of another account, even if their names
 * are equal.
 */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { post, hexSignature } from "../support/webhook-sender.ts";

const SECRET = "the-secret-of-account-b";

let server: TestServer;
let tokenA: string;
let tokenB: string;
beforeAll(async () => {
  server = await startTestServer({
    file: {
      agents: {
        modules: [TEST_AGENTS],
        tagChanges: [{ agent: "webhook-agent", name: "watcher", account: "b" }],
      },
      webhooks: { sources: { bsrc: { scheme: "github", account: "b" } } },
    },
    environment: { BSRC_WEBHOOK_SECRET: SECRET, GITHUB_WEBHOOK_SECRET: SECRET },
  });
  for (const id of ["a", "b"]) await server.api("POST", "/accounts", { id });
  tokenA = await server.token(["agents.edit", "agents.read", "webhooks.edit", "webhooks.read", "tags.edit"], {
    account: "a",
  });
  tokenB = await server.token(["agents.edit", "agents.read", "webhooks.edit", "webhooks.read", "tags.edit"], {
    account: "b",
  });
});
afterAll(() => server.stop());

const call = (path: string, token: string, ...args: unknown[]) =>
  server.api("POST", `/agents/${path}`, args, token);
const result = async (path: string, token: string, ...args: unknown[]) =>
  (await call(path, token, ...args)).body.result;
const titles = async (name: string, token: string, query = "") =>
  ((await result(`webhook-agent/${name}/rpc/getEvents${query}`, token)) as { id: string }[]).map(
    ({ id }) => id,
  );

describe("a token", () => {
  it("a token reaches the instance of its own account, over HTTP, calls and WebSockets", async () => {
    expect(await result("counter/shared/rpc/increment", tokenA, 1)).toBe(1);
    expect(await result("counter/shared/rpc/increment", tokenB, 10)).toBe(10);
    expect(await result("counter/shared/rpc/increment", ROOT_TOKEN, 100)).toBe(100);
    const [a, b] = [tokenA, tokenB].map(
      (token) => new RawClient(`${server.url}/agents/counter/shared`, { token }),
    );
    if (a === undefined || b === undefined) throw new Error("two sockets were opened");
    const isState = (frame: { type?: string }) => frame.type === "cf_agent_state";
    expect((await a.next(isState)).state).toEqual({ count: 1 });
    expect((await b.next(isState)).state).toEqual({ count: 10 });
    expect(await result("counter/shared/rpc/increment", tokenA, 1)).toBe(2);
    expect((await a.next(isState)).state).toEqual({ count: 2 });
    // A broadcast of the other account's change would arrive before the answer to this call.
    expect((await b.call("read")).result.count).toBe(10);
    expect(b.received.filter(isState)).toEqual([]);
    for (const client of [a, b]) client.close();
  });

  it("a token that names another account is refused, by parameter or header, whether or not the account exists", async () => {
    for (const account of ["a", "default", "no-such-account", ""]) {
      expect((await call(`counter/shared/rpc/read?account=${account}`, tokenB)).status).toBe(403);
      const response = await fetch(`${server.url}/agents/counter/shared/rpc/read`, {
        method: "POST",
        headers: { authorization: `Bearer ${tokenB}`, "signalbox-account": account },
      });
      expect(response.status).toBe(403);
      const socket = new RawClient(`${server.url}/agents/counter/shared?account=${account}`, {
        token: tokenB,
      });
      expect(await socket.closed()).toBeGreaterThanOrEqual(4000);
    }
    expect((await call("counter/shared/rpc/read?account=b", tokenB)).body.result.count).toBe(10);
  });

  it("a token without the permission is refused, even if another account's token has it", async () => {
    const weak = await server.token(["tags.edit"], { account: "b" });
    expect((await call("counter/shared/rpc/read", weak)).status).toBe(403);
  });
});

describe("the root token", () => {
  it("the root token uses the account default unless it names another existing account", async () => {
    expect((await result("counter/shared/rpc/read?account=b", ROOT_TOKEN)).count).toBe(10);
    expect((await result("counter/shared/rpc/read", ROOT_TOKEN)).count).toBe(100);
    const unknown = await call("counter/shared/rpc/read?account=nobody", ROOT_TOKEN);
    expect(unknown.status).toBe(404);
    expect(unknown.body.errors[0].message).toBe('Account "nobody" not found');
    expect((await call("counter/shared/rpc/read?account=", ROOT_TOKEN)).status).toBe(404);
    expect((await call("counter/shared/rpc/read?account=a&account=b", ROOT_TOKEN)).status).toBe(400);
    const socket = new RawClient(`${server.url}/agents/counter/shared?account=b`);
    await socket.greeted();
    expect((await socket.call("read")).result.count).toBe(10);
    socket.close();
  });
});

describe("management", () => {
  it("every account sees the operator's classes and only its own instances", async () => {
    const own = async (account: string) =>
      (await server.api("GET", `/accounts/${account}/agents/counter/instances`)).body.result.map(
        ({ name }: { name: string }) => name,
      );
    await result("counter/only-in-a/rpc/increment", tokenA);
    expect(await own("a")).toEqual(["only-in-a", "shared"]);
    expect(await own("b")).toEqual(["shared"]);
    const { body } = await server.api("GET", "/accounts/b/agents", undefined, tokenB);
    const counter = body.result.find(({ name }: { name: string }) => name === "counter");
    expect(counter).toMatchObject({ instance_count: 1 });
    const foreign = "/accounts/b/agents/counter/instances/only-in-a";
    for (const [method, path] of [
      ["GET", foreign],
      ["GET", `${foreign}/queue`],
      ["GET", `${foreign}/events`],
      ["DELETE", foreign],
    ] as const) {
      expect((await server.api(method, path, undefined, tokenB)).status).toBe(404);
    }
    expect((await server.api("GET", "/accounts/a/agents", undefined, tokenB)).status).toBe(403);
  });

  it("reading and destroying affect the account's own instance only", async () => {
    await result("counter/doomed/rpc/increment", tokenA, 3);
    await result("counter/doomed/rpc/increment", tokenB, 4);
    const path = (account: string) => `/accounts/${account}/agents/counter/instances/doomed`;
    const rows = await server.api("POST", `${path("b")}/sql`, { sql: "SELECT note FROM hits" }, tokenB);
    expect(rows.body.result.rows).toEqual([{ note: "+4" }]);
    expect((await server.api("DELETE", path("b"), undefined, tokenB)).status).toBe(200);
    expect((await server.api("GET", path("b"))).status).toBe(404);
    expect((await server.api("GET", path("a"))).body.result.state).toEqual({ count: 3 });
  });

  it("filters use the account's own tags, which are removed with the instance", async () => {
    const tagged = { resource_type: "agent", resource_id: "counter/tagged", tags: { team: "blue" } };
    for (const [account, token] of Object.entries({ a: tokenA, b: tokenB })) {
      await result("counter/tagged/rpc/increment", token);
      await server.api("PUT", `/accounts/${account}/tags`, tagged);
    }
    await server.api("DELETE", "/accounts/a/agents/counter/instances/tagged");
    const names = async (account: string) =>
      (
        await server.api("GET", `/accounts/${account}/agents/counter/instances?tag=team=blue`)
      ).body.result.map(({ name }: { name: string }) => name);
    expect(await names("a")).toEqual([]);
    expect(await names("b")).toEqual(["tagged"]);
  });

  it("the activity stream contains the account's own instance only", async () => {
    const stop = new AbortController();
    const stream = await fetch(`${server.url}/accounts/b/agents/counter/instances/watched/events`, {
      headers: { authorization: `Bearer ${tokenB}`, accept: "text/event-stream" },
      signal: stop.signal,
    });
    await result("counter/watched/rpc/increment", tokenA, 5);
    await result("counter/watched/rpc/increment", tokenB, 77_777);
    let text = "";
    for await (const chunk of (stream.body as ReadableStream<Uint8Array>).pipeThrough(
      new TextDecoderStream(),
    )) {
      text += chunk;
      if (text.includes("increment")) break;
    }
    stop.abort();
    expect(text.match(/event: start/g)).toHaveLength(1);
    expect(text.match(/event: state/g)).toHaveLength(1);
  });
});

describe("agents", () => {
  it("an agent knows its account and calls instances of it", async () => {
    await result("counter/callee/rpc/increment", tokenA, 5);
    await result("counter/callee/rpc/increment", tokenB, 50);
    expect(await result("plain-agent/caller/rpc/whoseCount", tokenB, "callee")).toEqual({
      account: "b",
      count: 50,
    });
    expect(await result("plain-agent/caller/rpc/whoseCount", tokenA, "callee")).toEqual({
      account: "a",
      count: 5,
    });
  });
});

describe("webhooks", () => {
  const payload = { repository: { full_name: "acme/widgets" }, sender: { login: "forged by b" } };

  it("a source delivers to instances of its account, also test events and replays", async () => {
    const body = JSON.stringify(payload);
    const headers = { "x-hub-signature-256": hexSignature(body, SECRET), "x-github-event": "push" };
    const genuine = { ...headers, "x-github-delivery": "of-default" };
    expect((await post(`${server.url}/webhooks/github`, body, genuine)).status).toBe(200);
    const test = await server.api("POST", "/accounts/b/webhooks/sources/bsrc/test", { payload }, tokenB);
    expect(test.body.result.status).toBe(200);
    const sent = { ...headers, "x-github-delivery": "of-b" };
    expect((await post(`${server.url}/webhooks/bsrc`, body, sent)).status).toBe(200);
    expect(await titles("acme-widgets", ROOT_TOKEN)).toEqual(["of-default"]);
    expect(await titles("acme-widgets", tokenB)).toEqual(["of-b", test.body.result.delivery_id]);
    const own = await server.api(
      "GET",
      "/accounts/b/webhooks/deliveries?delivery_id=of-b",
      undefined,
      tokenB,
    );
    const replay = `/accounts/b/webhooks/deliveries/${own.body.result[0].id}/replay`;
    expect((await server.api("POST", replay, {}, tokenB)).body.result.status).toBe("processed");
    expect(await titles("acme-widgets", ROOT_TOKEN)).toEqual(["of-default"]);
    expect(await titles("acme-widgets", tokenB)).toHaveLength(3);
  });

  it("names are claimed per account: entities of another account do not conflict", async () => {
    for (const [source, repository] of [
      ["github", "x/y-z"],
      ["bsrc", "x-y/z"],
    ] as const) {
      const body = JSON.stringify({ repository: { full_name: repository } });
      const headers = {
        "x-hub-signature-256": hexSignature(body, SECRET),
        "x-github-delivery": `claim-${source}`,
      };
      expect(
        (await post(`${server.url}/webhooks/${source}`, body, { ...headers, "x-github-event": "push" }))
          .status,
      ).toBe(200);
    }
    expect(await titles("x-y-z", ROOT_TOKEN)).toEqual(["claim-github"]);
    expect(await titles("x-y-z", tokenB)).toEqual(["claim-bsrc"]);
  });

  it("tag changes are sent to the instance of the tags' account", async () => {
    const resource = { resource_type: "ai_gateway", resource_id: "g", tags: { env: "prod" } };
    await server.api("PUT", "/accounts/b/tags", resource, tokenB);
    await expect.poll(() => titles("watcher", tokenB)).toContainEqual(expect.stringMatching(/^tags:b:/));
    expect((await server.api("GET", "/accounts/default/agents/webhook-agent/instances/watcher")).status).toBe(
      404,
    );
  });
});

describe("with public access", () => {
  it("callers without a token use the account default; another account needs a credential", async () => {
    const open = await startTestServer({ file: { agents: { modules: [TEST_AGENTS], access: "public" } } });
    try {
      await open.api("POST", "/accounts", { id: "b" });
      const own = await open.token(["agents.edit"], { account: "b" });
      const increment = (query: string, token: string | null) =>
        open.api("POST", `/agents/counter/x/rpc/increment${query}`, [], token);
      expect((await increment("", null)).body.result).toBe(1);
      expect((await increment("?account=default", null)).body.result).toBe(2);
      expect((await increment("?account=b", null)).status).toBe(401);
      expect((await increment("", "not-a-token")).body.result).toBe(3);
      expect((await increment("", own)).body.result).toBe(1);
      expect((await increment("?account=b", ROOT_TOKEN)).body.result).toBe(2);
      const reader = await open.token(["agents.read"], { account: "b" });
      expect((await increment("", reader)).status).toBe(403);
    } finally {
      await open.stop();
    }
  });
});
