/** Refused requests create no instance, and callers without a token create instances at a limited rate. */
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient } from "../support/agents.ts";
import { RawSocket } from "../support/raw-socket.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { hexSignature, post, SECRET } from "../support/webhook-sender.ts";

const MODULES = [join(import.meta.dirname, "../fixtures/admission-agents.ts")];
const environment = { WEBHOOK_SECRET: SECRET, BOUNCER_PASSWORD: "friend" };

let closed: TestServer;
let open: TestServer;
beforeAll(async () => {
  closed = await startTestServer({ environment, file: { agents: { modules: MODULES, idleTimeoutMs: 50 } } });
  open = await startTestServer({
    environment,
    file: { agents: { modules: MODULES, access: "public", newInstancesPerMinute: 3 } },
  });
});
afterAll(async () => {
  await closed.stop();
  await open.stop();
});

async function instances(server: TestServer): Promise<string[]> {
  const { body } = await server.api("GET", "/accounts/default/agents");
  const lists = await Promise.all(
    body.result.map(async ({ name }: { name: string }) =>
      (await server.api("GET", `/accounts/default/agents/${name}/instances`)).body.result.map(
        (entry: { name: string }) => `${name}/${entry.name}`,
      ),
    ),
  );
  return lists.flat();
}

/** Sends a raw request that `fetch` would refuse to send. */
async function raw(server: TestServer, lines: string): Promise<string> {
  const socket = new RawSocket(server.url);
  socket.write(`${lines}\r\nauthorization: Bearer ${ROOT_TOKEN}\r\nconnection: close\r\n\r\n`);
  await socket.closed();
  return socket.received.toString("latin1");
}

const REFUSED: readonly (readonly [string, string, string, RequestInit, number, number])[] = [
  ["GET of a webhook agent", "webhook-agent/s1", "GET", {}, 405, 7001],
  ["PUT with a body", "webhook-agent/s2", "PUT", { body: "{}" }, 405, 7001],
  ["an unsigned delivery", "webhook-agent/s3", "POST", { body: "{}" }, 401, 4001],
  [
    "a wrong signature",
    "webhook-agent/s4",
    "POST",
    { body: "{}", headers: { "x-signature": "sha256=00" } },
    401,
    4001,
  ],
  [
    "a signed body that is not JSON",
    "webhook-agent/s5",
    "POST",
    { body: "{", headers: { "x-signature": hexSignature("{"), "content-type": "application/json" } },
    400,
    4002,
  ],
  ["an agent that answers no requests", "mute/s6", "GET", {}, 404, 7003],
  ["a method that does not exist", "exact/s7/rpc/nothing", "POST", { body: "[]" }, 404, 3004],
  ["a method that streams", "exact/s8/rpc/streamRows", "POST", { body: "[]" }, 400, 7002],
  ["a call by GET", "exact/s9/rpc/rows", "GET", {}, 405, 7001],
  ["arguments that are not JSON", "exact/s10/rpc/rows", "POST", { body: "{" }, 400, 7002],
  ["a request on which the class's own hook throws", "bouncer/silent", "GET", {}, 500, 1000],
];

describe.each([
  ["with a token that may edit", () => closed, ROOT_TOKEN],
  ["with public access", () => open, null],
])("a refused request %s", (_where, server, token) => {
  it.each(REFUSED)("(%s) creates no instance", async (_title, path, method, init, status, code) => {
    const headers = new Headers(init.headers);
    if (token !== null) headers.set("authorization", `Bearer ${token}`);
    const before = await instances(server());
    const answer = await fetch(`${server().url}/agents/${path}`, { ...init, method, headers });
    expect(answer.status).toBe(status);
    expect(await answer.json()).toMatchObject({ success: false, errors: [{ code }] });
    if (status === 405) expect(answer.headers.get("allow")).toBe("POST");
    expect(await instances(server())).toEqual(before);
  });

  it("a request refused by the class's own hook gets the hook's response and creates no instance", async () => {
    const headers: Record<string, string> = token === null ? {} : { authorization: `Bearer ${token}` };
    const answer = await fetch(`${server().url}/agents/bouncer/door`, { headers });
    expect([answer.status, await answer.text()]).toEqual([403, "not you"]);
    expect(await instances(server())).not.toContain("bouncer/door");
  });

  it("a malformed Host or the method TRACE gets 4xx and creates no instance", async () => {
    const before = await instances(server());
    for (const host of ["a b", "[::1", "user@host", "x/y", "a:99999", "%zz"]) {
      expect(await raw(server(), `GET /agents/bouncer/h HTTP/1.1\r\nhost: ${host}`)).toMatch(
        /^HTTP\/1\.1 400 [\s\S]*"code":7005/,
      );
    }
    expect(await raw(server(), "TRACE /agents/bouncer/t HTTP/1.1\r\nhost: x")).toMatch(
      /^HTTP\/1\.1 405 [\s\S]*allow: GET, HEAD[\s\S]*"code":7001/i,
    );
    expect(await instances(server())).toEqual(before);
  });
});

describe("a caller with read permission only", () => {
  it("a missing instance is not found and not created", async () => {
    const reader = await closed.token(["agents.read"]);
    const before = await instances(closed);
    for (const method of ["GET", "HEAD"]) {
      for (const path of ["bouncer/absent", "webhook-agent/absent", "bouncer/absent/below"]) {
        const answer = await fetch(`${closed.url}/agents/${path}`, {
          method,
          headers: { authorization: `Bearer ${reader}`, "x-password": "friend" },
        });
        expect(answer.status).toBe(404);
        if (method === "GET") expect(await answer.json()).toMatchObject({ errors: [{ code: 3003 }] });
      }
    }
    expect((await closed.api("POST", "/agents/exact/absent/rpc/rows", [], reader)).status).toBe(403);
    expect(await instances(closed)).toEqual(before);
  });

  it("a WebSocket may wait for a missing instance, is greeted normally, and receives its first event", async () => {
    const reader = await closed.token(["agents.read"]);
    const before = await instances(closed);
    const url = `${closed.url}/agents/webhook-agent/expected`;
    const [one, two] = await Promise.all([1, 2].map(() => new RawClient(url, { token: reader }).opened()));
    const initial = { type: "cf_agent_state", state: { lastEvent: null, eventCount: 0 } };
    for (const socket of [one, two]) {
      expect(await socket?.next()).toMatchObject({ type: "cf_agent_identity", name: "expected" });
      expect(await socket?.next()).toEqual(initial);
    }
    const readonly = "Connection is readonly";
    expect(await one?.call("getEvents")).toMatchObject({ success: false, error: readonly });
    for (const frame of [{ type: "cf_agent_state", state: { eventCount: 9 } }, "hello"]) {
      one?.send(frame);
      expect(await one?.next()).toMatchObject({ type: "cf_agent_state_error", error: readonly });
      expect(await one?.next()).toEqual(initial);
    }
    // A disconnected client is skipped.
    two?.close();
    expect(await instances(closed)).toEqual(before);

    const body = JSON.stringify({ type: "first", id: "first" });
    const sent = await post(`${closed.url}/webhooks/expected`, body, { "x-signature": hexSignature(body) });
    expect(sent.status).toBe(200);
    await one?.next(({ type, state }) => type === "cf_agent_state" && state.eventCount === 1);
    expect(await one?.call("getEvents")).toMatchObject({ success: true, result: [{ id: "first" }] });
    expect(await instances(closed)).toEqual([...before, "webhook-agent/expected"].sort());
    one?.close();
  });

  it("a class without initial state sends nothing before the first event", async () => {
    const reader = await closed.token(["agents.read"]);
    const socket = await new RawClient(`${closed.url}/agents/exact/expected`, { token: reader }).opened();
    expect(await socket.next()).toEqual({ type: "cf_agent_identity", agent: "exact", name: "expected" });
    expect((await closed.api("POST", "/agents/exact/expected/rpc/rows", [])).status).toBe(200);
    expect(await socket.next()).toMatchObject({ type: "cf_agent_identity" });
    socket.close();
  });

  it("an existing instance is found, in memory or idle", async () => {
    const reader = await closed.token(["agents.read"]);
    const welcome = () =>
      fetch(`${closed.url}/agents/bouncer/there`, {
        headers: { authorization: `Bearer ${reader}`, "x-password": "friend" },
      }).then((answer) => answer.text());
    const editor = { authorization: `Bearer ${ROOT_TOKEN}`, "x-password": "friend" };
    await fetch(`${closed.url}/agents/bouncer/there`, { headers: editor });
    expect(await welcome()).toBe("welcome");
    const shown = "/accounts/default/agents/bouncer/instances/there";
    await expect.poll(async () => (await closed.api("GET", shown)).body.result.in_memory).toBe(false);
    expect(await welcome()).toBe("welcome");
    const socket = await new RawClient(`${closed.url}/agents/bouncer/there`, { token: reader }).opened();
    expect(await socket.next()).toMatchObject({ type: "cf_agent_identity" });
    socket.close();
  });
});

describe("with public access", () => {
  it("callers without a token create instances at a limited rate; tokens and signed events are not limited", async () => {
    const call = (name: string, token: string | null) =>
      open.api("POST", `/agents/exact/${name}/rpc/rows`, [], token);
    const first = await Promise.all(["p1", "p2", "p3"].map((name) => call(name, null)));
    expect(first.map(({ status }) => status)).toEqual([200, 200, 200]);
    const fourth = await call("p4", null);
    expect([fourth.status, fourth.body.errors[0].code]).toEqual([503, 7008]);
    expect(Number(fourth.headers.get("retry-after"))).toBeGreaterThan(0);
    const get = await fetch(`${open.url}/agents/bouncer/p4`, { headers: { "x-password": "friend" } });
    expect(get.status).toBe(503);
    const socket = await new RawClient(`${open.url}/agents/exact/p4`, { token: null }).opened();
    expect(await socket.closed()).toBe(1013);
    // Existing instances stay open to every caller.
    expect((await call("p1", null)).status).toBe(200);
    expect(await instances(open)).not.toContain("exact/p4");
    expect((await call("p4", ROOT_TOKEN)).status).toBe(200);
    const body = JSON.stringify({ id: "e1" });
    const signed = await post(`${open.url}/webhooks/p5`, body, { "x-signature": hexSignature(body) });
    expect(signed.body).toEqual({ status: "processed" });
  });
});
