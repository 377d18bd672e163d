/**
 * Credentials that end while connections opened with them are alive: sockets close with a final code, streams end,
 * and waiting work does not run.
 */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { RawClient, TEST_AGENTS } from "../support/agents.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let server: TestServer;
let ahead = 0;
const clock = { now: () => Date.now() + ahead };
const TOKENS = "/accounts/default/tokens";
/** The gate of the fixture agent. */
const GATE = Symbol.for("signalbox.test.gate");
const GATED_AGENT = join(import.meta.dirname, "../fixtures/gated-agent.ts");
const SOCKET = "/agents/counter/watched";

beforeAll(async () => {
  server = await startTestServer({ clock, file: { agents: { modules: [TEST_AGENTS, GATED_AGENT] } } });
});
afterAll(() => server.stop());

interface Made {
  readonly id: string;
  readonly token: string;
}

async function make(permissions: readonly string[], rest: object = {}): Promise<Made> {
  const { body } = await server.api("POST", TOKENS, { name: "short", permissions, ...rest });
  return body.result as Made;
}

const revoke = ({ id }: Made) => server.api("DELETE", `${TOKENS}/${id}`);

async function connect(token: string): Promise<RawClient> {
  const client = await new RawClient(server.url + SOCKET, { token }).opened();
  await client.greeted();
  return client;
}

interface Stream {
  readonly response: IncomingMessage;
  text(): string;
  /** Resolves with true if the stream ended completely. */
  readonly ended: Promise<boolean>;
}

async function follow(path: string, headers: Record<string, string>): Promise<Stream> {
  const request = httpRequest(server.url + path, {
    agent: false,
    headers: { accept: "text/event-stream", ...headers },
  });
  request.end();
  const [response] = (await once(request, "response")) as [IncomingMessage];
  expect(response.statusCode).toBe(200);
  let text = "";
  response.setEncoding("utf8").on("data", (chunk: string) => (text += chunk));
  response.on("error", () => undefined);
  const ended = new Promise<boolean>((resolve) => response.once("close", () => resolve(response.complete)));
  return { response, text: () => text, ended };
}

const CHANGES = "/accounts/default/tags/changes";
const EVENTS = "/accounts/default/agents/counter/instances/watched/events";
const tagSomething = (value: string) =>
  server.api("PUT", "/accounts/default/tags", {
    resource_type: "agent",
    resource_id: "counter/watched",
    tags: { value },
  });

const bearer = ({ token }: Made) => ({ authorization: `Bearer ${token}` });

/** A browser session opened with the token. */
async function login(token: string): Promise<Record<string, string>> {
  const { host } = new URL(server.url);
  const response = await fetch(`${server.url}/dashboard/session`, {
    method: "POST",
    headers: { origin: `http://${host}` },
    body: JSON.stringify({ token }),
  });
  const cookie = response.headers.get("set-cookie")?.split(";")[0] ?? "";
  return { cookie, origin: `http://${host}` };
}

describe("a revoked token", () => {
  it("open WebSockets of a revoked token close with 4401, which is final, and others stay open", async () => {
    const made = await make(["agents.edit"]);
    const other = await make(["agents.edit"]);
    const [first, second, kept] = [
      await connect(made.token),
      await connect(made.token),
      await connect(other.token),
    ];
    await revoke(made);
    expect(await first.closed()).toBe(4401);
    expect(await second.closed()).toBe(4401);
    expect((await kept.call("read")).success).toBe(true);
    kept.close();
  });

  it("event streams of a revoked token end completely and contain no later events", async () => {
    const made = await make(["tags.read", "agents.read"]);
    const headers = { authorization: `Bearer ${made.token}` };
    const streams = [await follow(CHANGES, headers), await follow(EVENTS, headers)];
    const kept = await follow(CHANGES, { authorization: "Bearer root-token-of-the-test-server" });
    await revoke(made);
    for (const stream of streams) expect(await stream.ended).toBe(true);
    await tagSomething("after-the-end");
    await expect.poll(() => kept.text()).toContain("after-the-end");
    for (const stream of streams) expect(stream.text()).not.toContain("after-the-end");
    kept.response.destroy();
  });

  it("frames that were received but not started when the token was revoked are not run", async () => {
    let open: () => void = () => undefined;
    Object.assign(globalThis, { [GATE]: new Promise<void>((resolve) => (open = resolve)) });
    const made = await make(["agents.edit"]);
    const url = `${server.url}/agents/gated-agent/watched`;
    const [root, client] = [new RawClient(url), new RawClient(url, { token: made.token })];
    for (const one of [root, client]) {
      await one.opened();
      await one.greeted();
    }
    // Turns of an instance run in order: this turn blocks the later ones until the token is revoked.
    const held = root.call("hold");
    // Sent and read before the other frames: one event loop reads both sockets in the order of arrival.
    root.socket.ping();
    await once(root.socket, "pong");
    for (let n = 0; n < 20; n++)
      client.send({ type: "rpc", id: `late-${n}`, method: "increment", args: [1000] });
    client.send({ type: "cf_agent_state", state: { count: 5_000_000 } });
    client.send("a message of its own");
    // The pong confirms that all earlier frames were read.
    client.socket.ping();
    await once(client.socket, "pong");
    await revoke(made);
    expect(await client.closed()).toBe(4401);
    open();
    expect((await held).success).toBe(true);
    expect((await root.call("read")).result).toEqual({ count: 0 });
    root.close();
  });

  it("a stream of an agent to a revoked token ends", async () => {
    const made = await make(["agents.read"]);
    const stream = await follow("/agents/gated-agent/watched", { authorization: `Bearer ${made.token}` });
    await expect.poll(() => stream.text()).toContain("open");
    await revoke(made);
    await stream.ended;
  });

  it("a token that is revoked during authentication is refused", async () => {
    for (let n = 0; n < 10; n++) {
      const made = await make(["agents.edit"]);
      const client = new RawClient(server.url + SOCKET, { token: made.token });
      await revoke(made);
      expect(await client.closed()).toBe(4401);
    }
  });
});

describe("a rotated token", () => {
  const rotate = async ({ id }: Made, graceS: number): Promise<Made> => {
    const { body } = await server.api("POST", `${TOKENS}/${id}/rotate`, { grace_s: graceS });
    return body.result as Made;
  };

  it("what the old secret has opened ends with the grace, and what the new one has opened goes on", async () => {
    const made = await make(["agents.edit", "tags.read"]);
    const before = [await connect(made.token), await follow(CHANGES, bearer(made))] as const;
    const rotated = await rotate(made, 3600);
    const during = [await connect(made.token), await follow(CHANGES, bearer(made))] as const;
    const kept = [await connect(rotated.token), await follow(CHANGES, bearer(rotated))] as const;
    const session = await login(made.token);
    // All of them work until then.
    for (const [client] of [before, during, kept]) expect((await client.call("read")).success).toBe(true);
    ahead += 3_600_000;
    for (const [client, stream] of [before, during]) {
      expect(await client.closed()).toBe(4401);
      expect(await stream.ended).toBe(true);
    }
    expect((await fetch(`${server.url}/accounts`, { headers: session })).status).toBe(401);
    expect((await kept[0].call("read")).success).toBe(true);
    await tagSomething("after-the-grace");
    await expect.poll(() => kept[1].text()).toContain("after-the-grace");
    kept[0].close();
    kept[1].response.destroy();
  });

  it("a second rotation ends what the first secret has opened", async () => {
    const made = await make(["agents.edit"]);
    const first = await connect(made.token);
    const rotated = await rotate(made, 3600);
    const second = await connect(rotated.token);
    const again = await rotate(made, 3600);
    expect(await first.closed()).toBe(4401);
    expect((await second.call("read")).success).toBe(true);
    const third = await connect(again.token);
    await rotate(made, 0);
    for (const client of [second, third]) expect(await client.closed()).toBe(4401);
  });
});

describe("an expired token", () => {
  it("sockets and streams of an expired token end within a second, also if the clock is set ahead", async () => {
    const made = await make(["agents.edit", "tags.read"], {
      expires_at: new Date(clock.now() + 3_600_000).toISOString(),
    });
    const client = await connect(made.token);
    const stream = await follow(CHANGES, { authorization: `Bearer ${made.token}` });
    ahead += 3_600_000;
    expect(await client.closed()).toBe(4401);
    expect(await stream.ended).toBe(true);
  });
});

describe("a dashboard session", () => {
  it("a logout ends the session's sockets and streams; other sessions keep theirs", async () => {
    const made = await make(["agents.read", "tags.read"]);
    const [first, second] = [await login(made.token), await login(made.token)];
    const [gone, kept] = [await follow(CHANGES, first), await follow(CHANGES, second)];
    const client = new RawClient(server.url + SOCKET, { token: null, headers: first });
    await client.opened();
    await fetch(`${server.url}/dashboard/session`, { method: "DELETE", headers: first });
    expect(await gone.ended).toBe(true);
    expect(await client.closed()).toBe(4401);
    await tagSomething("still-here");
    await expect.poll(() => kept.text()).toContain("still-here");
    await revoke(made);
    expect(await kept.ended).toBe(true);
  });

  it("a session of a former root token is invalid", async () => {
    const dataDir = join(server.dataDir, "rotated");
    const start = (token: string) =>
      startTestServer({ dataDir, environment: { SIGNALBOX_ROOT_TOKEN: token } });
    const first = await start("the-root-token-that-leaked");
    const opened = await fetch(await first.service.createLoginLink(), { redirect: "manual" });
    const headers = { cookie: opened.headers.get("set-cookie")?.split(";")[0] ?? "" };
    const status = async (one: TestServer) => (await fetch(`${one.url}/accounts`, { headers })).status;
    expect(await status(first)).toBe(200);
    await first.stop();
    const second = await start("the-root-token-that-leaked");
    expect(await status(second)).toBe(200);
    await second.stop();
    const third = await start("a-root-token-nobody-knows");
    expect(await status(third)).toBe(401);
    await third.stop();
  });

  it("a session of the root token ends after a week", async () => {
    const session = await login("root-token-of-the-test-server");
    const stream = await follow(CHANGES, session);
    const root = await follow(CHANGES, { authorization: "Bearer root-token-of-the-test-server" });
    ahead += 7 * 86_400_000;
    expect(await stream.ended).toBe(true);
    expect(root.response.destroyed).toBe(false);
    root.response.destroy();
  });
});
