/** Attacks on realtime sessions: strangers, callers who want more than their token allows, and peers that send or read as nobody should. */
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type RealtimePeer, send, serveLikeOpenAi, startRealtimePeer } from "../peers/realtime.ts";
import { rawExchange, readLogs, setGateway } from "../support/gateway.ts";
import { openSession, refusedSession } from "../support/realtime.ts";
import { ROOT_TOKEN, startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

const MESSAGE_BYTES = 64 * 1024;
const PATH = "/v1/default/default/openai/realtime?model=gpt-realtime";
let peer: RealtimePeer;
let server: TestServer;
let url: string;
beforeAll(async () => {
  peer = await startRealtimePeer();
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: `${peer.url}/v1` }, "google-ai-studio": { baseUrl: peer.url } },
      gateway: { realtime: { maxMessageBytes: MESSAGE_BYTES }, stallTimeoutMs: 1000 },
    },
  });
  url = server.url + PATH;
  await setGateway(server, { authentication: true });
  for (const provider_slug of ["openai", "google-ai-studio"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug,
      secret: "stored-key",
    });
  }
});
afterAll(async () => {
  await server.stop();
  await peer.close();
});
beforeEach(() => {
  peer.sessions.length = 0;
  peer.handshakes.length = 0;
  peer.serve = serveLikeOpenAi;
});

async function mint(fields: object = {}): Promise<string> {
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name: "realtime",
    permissions: ["gateway.run"],
    ...fields,
  });
  return (body as { result: { token: string } }).result.token;
}
const own = (token: string) => ({ headers: { "gw-aig-authorization": `Bearer ${token}` } });

describe("strangers", () => {
  it.each<[string, { headers?: Record<string, string>; protocols?: string[] }]>([
    ["no token", {}],
    ["a provider's key", { headers: { authorization: "Bearer sk-own" } }],
    ["a wrong token", { headers: { "gw-aig-authorization": "Bearer nonsense" } }],
    ["a wrong token in a sub-protocol", { protocols: ["realtime", "gw-aig-authorization.nonsense"] }],
    ["the root token in a sub-protocol", { protocols: ["realtime", `gw-aig-authorization.${ROOT_TOKEN}`] }],
  ])("with %s nothing is forwarded and nothing is logged", async (_, options) => {
    const before = (await readLogs(server)).length;
    const refusal = await refusedSession(url, options);
    expect(refusal.status).toBe(401);
    expect(JSON.parse(refusal.body)).toMatchObject({ error: [{ code: 2009 }] });
    expect(peer.handshakes).toHaveLength(0);
    expect(await readLogs(server)).toHaveLength(before);
  });

  it.each([
    ["no key", ""],
    ["an old version", "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 7\r\n"],
    [
      "malformed sub-protocols",
      "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\nsec-websocket-protocol: a,,b\r\n",
    ],
  ])("a request that is no handshake (%s) is refused before a provider is dialled", async (_, lines) => {
    const token = await mint();
    const answer = await rawExchange(
      server,
      `GET ${PATH} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\ngw-aig-authorization: Bearer ${token}\r\n${lines}\r\n`,
      /\}$/,
    );
    expect(answer).toMatch(/^HTTP\/1\.1 400 /);
    expect(peer.handshakes).toHaveLength(0);
  });
});

describe("callers with rules", () => {
  it("a model that the token may not use is refused at the handshake", async () => {
    const token = await mint({ models: ["openai/gpt-realtime-mini"] });
    const refusal = await refusedSession(url, own(token));
    expect([refusal.status, JSON.parse(refusal.body)]).toMatchObject([403, { error: [{ code: 2043 }] }]);
    expect(peer.handshakes).toHaveLength(0);
  });

  it("a token without the kind realtime opens no session", async () => {
    const token = await mint({ routes: ["chat"] });
    expect((await refusedSession(url, own(token))).status).toBe(403);
  });

  const other = "gpt-realtime-large";
  it.each([
    ["session.update", { type: "session.update", session: { model: other } }],
    ["another case", { type: "session.update", Session: { Model: other } }],
    [
      "transcription",
      { type: "session.update", session: { audio: { input: { transcription: { model: other } } } } },
    ],
    ["response.create", { type: "response.create", response: { model: other } }],
    ["an unknown event", { type: "session.replace", session: { deep: [{ model: other }] } }],
    ["a hosted tool", { type: "session.update", session: { tools: [{ type: "x", model: other }] } }],
  ])("a session cannot change to another model by %s", async (_, event) => {
    const token = await mint({ models: ["openai/gpt-realtime"] });
    const client = await openSession(url, own(token));
    client.send(event);
    expect(await client.event("error")).toMatchObject({ error: { code: "2043" } });
    expect((await client.closed).code).toBe(1008);
    expect(peer.sessions[0]?.messages ?? []).toEqual([]);
  });

  it.each([
    [
      "a second member of the same name",
      `{"type":"session.update","session":{},"session":{"model":"${other}"}}`,
    ],
    ["an escaped name", `{"type":"session.update","session":{"mod\\u0065l":"${other}"}}`],
    [
      "sound that is something else, too",
      `{"type":"input_audio_buffer.append","type":"session.update","session":{"model":"${other}"}}`,
    ],
  ])("nor by %s", async (_, text) => {
    const token = await mint({ models: ["openai/gpt-realtime"] });
    const client = await openSession(url, own(token));
    client.socket.send(text);
    expect((await client.closed).code).toBe(1008);
    expect(peer.sessions[0]?.messages ?? []).toEqual([]);
  });

  it("a tool's parameter named model is no model", async () => {
    const token = await mint({ models: ["openai/gpt-realtime"] });
    const client = await openSession(url, own(token));
    const parameters = { type: "object", properties: { model: { type: "string" } }, model: "x" };
    client.send({
      type: "session.update",
      session: { tools: [{ type: "function", name: "f", parameters }] },
    });
    await client.event("session.updated");
    client.socket.close();
    await client.closed;
  });

  it("text that is no JSON is not passed on", async () => {
    const client = await openSession(url, own(await mint()));
    client.socket.send('{"type":"session.update",');
    expect(await client.event("error")).toMatchObject({ error: { code: "2002" } });
    expect(peer.sessions[0]?.messages).toEqual([]);
    client.socket.close();
    await client.closed;
  });

  it("Gemini content before a model is named is refused under rules of models", async () => {
    const token = await mint({ models: ["google-ai-studio/gemini-live"] });
    const path = "ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent";
    peer.serve = () => undefined;
    const at = `${server.url}/v1/default/default/google-ai-studio/${path}`;
    const early = await openSession(at, own(token));
    early.send({ clientContent: { turns: [], turnComplete: true } });
    expect((await early.closed).code).toBe(1008);
    const wrong = await openSession(at, own(token));
    wrong.send({ setup: { model: "models/gemini-large" } });
    expect((await wrong.closed).code).toBe(1008);
    const right = await openSession(at, own(token));
    right.send({ setup: { model: "models/gemini-live" } });
    right.send({ client_content: { turns: [], turnComplete: true } });
    await waitUntil(
      () => peer.sessions[2]?.messages.length,
      (count) => count === 2,
    );
    right.socket.close();
    await right.closed;
    expect(peer.sessions.slice(0, 2).flatMap(({ messages }) => messages)).toEqual([]);
  });

  it("a budget counts what a session of an unknown dialect uses as unknown, and refuses it", async () => {
    const token = await mint({ budgets: [{ limit: 1, window: 30 * 86_400 }] });
    const refusal = await refusedSession(`${server.url}/v1/default/default/openai/other`, own(token));
    expect([refusal.status, JSON.parse(refusal.body)]).toMatchObject([429, { error: [{ code: 2042 }] }]);
  });
});

describe("headers", () => {
  it("forwards no header of the connection, the proxy or the gateway, and no second token", async () => {
    const token = await mint();
    const client = await openSession(url, {
      headers: {
        ...own(token).headers,
        cookie: "session=1",
        "x-forwarded-for": "1.2.3.4",
        origin: "https://evil.example",
        "cf-aig-metadata": '{"a":"b"}',
        "proxy-authorization": "Basic x",
        "x-custom": "kept",
      },
      protocols: ["realtime", "openai-beta.realtime-v1"],
    });
    const headers = peer.handshakes[0]?.headers ?? {};
    expect(headers).toMatchObject({
      "x-custom": "kept",
      "sec-websocket-protocol": "realtime,openai-beta.realtime-v1",
      authorization: "Bearer stored-key",
    });
    for (const name of [
      "cookie",
      "x-forwarded-for",
      "origin",
      "cf-aig-metadata",
      "gw-aig-authorization",
      "proxy-authorization",
    ])
      expect(headers).not.toHaveProperty(name);
    client.socket.close();
    await client.closed;
    const second = await mint();
    const refused = await refusedSession(url, { ...own(token), protocols: ["realtime", `x.${second}`] });
    expect(refused.status).toBe(401);
    expect(peer.handshakes).toHaveLength(1);
  });

  it("a stored key is not sent to a private address of a custom provider", async () => {
    const { status } = await server.api("POST", "/accounts/default/ai-gateway/custom-providers", {
      name: "Inside",
      slug: "inside",
      base_url: "https://inside.localhost",
      enable: true,
    });
    expect(status).toBeOneOf([200, 400]);
    const refusal = await refusedSession(
      `${server.url}/v1/default/default/custom-inside/realtime?model=x`,
      own(await mint()),
    );
    expect(refusal.status).toBeGreaterThanOrEqual(400);
  });
});

describe("peers that misbehave", () => {
  it("a message that is too large ends the session, from either side", async () => {
    const client = await openSession(url, own(await mint()));
    client.socket.send("x".repeat(MESSAGE_BYTES + 1));
    expect((await client.closed).code).toBe(1009);
    peer.serve = ({ socket }) => socket.on("message", () => socket.send("x".repeat(MESSAGE_BYTES + 1)));
    const other = await openSession(url, own(await mint()));
    other.send({ type: "session.update" });
    expect((await other.closed).code).toBe(1009);
  });

  it("a client that does not read stops the provider, and is dropped in time", async () => {
    let sent = 0;
    peer.serve = ({ socket }) => {
      const text = JSON.stringify({ type: "response.output_audio.delta", delta: "x".repeat(32 * 1024) });
      const more = () => {
        if (socket.readyState !== socket.OPEN || sent > 4096) return;
        sent += 1;
        socket.send(text, more);
      };
      more();
    };
    const token = await mint();
    // Before the session begins: on a slow machine it may have ended when the log has been read.
    const before = (await readLogs(server)).length;
    const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write(
      `GET ${PATH} HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\ngw-aig-authorization: Bearer ${token}\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\nsec-websocket-version: 13\r\n\r\n`,
    );
    await once(socket, "readable");
    const session = await waitUntil(
      () => peer.sessions[0],
      (found) => found !== undefined,
    );
    await waitUntil(
      () => session?.socket.readyState,
      (state) => state === 3,
    );
    // 128 MB were on offer; what fits the buffers of two sockets and of the session was taken.
    expect(sent).toBeLessThan(2048);
    await waitUntil(
      () => readLogs(server),
      (rows) => rows.length > before,
    );
    socket.destroy();
  });

  it("events that the client provokes cannot release what a response has reserved", async () => {
    const token = await mint({ rate_limits: [{ type: "tokens", limit: 5000, interval: 30 * 86_400 }] });
    peer.serve = ({ socket }) =>
      socket.on("message", (data: Buffer) => {
        const { type } = JSON.parse(data.toString()) as { type: string };
        if (type === "provoke") send(socket, { type: "error", error: {} });
        else send(socket, { type: "response.created", response: {} });
      });
    const client = await openSession(url, own(token));
    client.send({ type: "provoke" });
    client.send({ type: "response.create" });
    await client.event("response.created");
    client.send({ type: "provoke" });
    client.send({ type: "response.create" });
    await waitUntil(
      () => client.events.some((event) => (event["error"] as { code?: string } | undefined)?.code === "2003"),
      Boolean,
    );
    client.socket.close();
    await client.closed;
  });
});

describe("a provider that never comes to an end", () => {
  it.each([
    ["its refusal", "HTTP/1.1 403 Forbidden\r\ncontent-length: 1000000\r\n\r\n", 403],
    ["the head of its answer", "HTTP/1.1 101 Switching Protocols\r\nx: ", 504],
    ["informational responses", "", 504],
  ])("holds no session with %s, byte by byte", async (_, begin, status) => {
    const timers = new Set<NodeJS.Timeout>();
    const sockets = new Set<Socket>();
    const provider = createServer((socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined);
      socket.write(begin);
      const piece = begin === "" ? "HTTP/1.1 103 Early Hints\r\n\r\n" : "x";
      timers.add(setInterval(() => socket.write(piece), 10));
    }).listen(0, "127.0.0.1");
    await once(provider, "listening");
    const { port } = provider.address() as AddressInfo;
    const slow = await startTestServer({
      file: {
        providers: { openai: { baseUrl: `http://127.0.0.1:${port}/v1` } },
        gateway: { connectTimeoutMs: 300 },
      },
    });
    const refusal = await refusedSession(slow.url + PATH, { headers: { authorization: "Bearer sk-own" } });
    expect(refusal.status).toBe(status);
    for (const timer of timers) clearInterval(timer);
    for (const socket of sockets) socket.destroy();
    provider.close();
    await slow.stop();
  });
});
