/** Contract sections 2.1, 3.1, 5.1 and 7.2: the Authenticated Gateway setting, its tokens and its refusal. */
import { generateToken } from "@signalbox/protocol";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import {
  callPath,
  CHAT,
  post,
  rawExchange,
  send,
  setGateway,
  startWithProvider,
} from "../support/gateway.ts";
import { ROOT_TOKEN, type TestServer } from "../support/test-server.ts";

const REFUSAL = {
  success: false,
  result: [],
  messages: [],
  error: [{ code: 2009, message: "Unauthorized" }],
  name: "AiGatewayError",
  httpCode: 401,
  internalCode: 2009,
  message: "Unauthorized",
};

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let now = Date.now();
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at } },
    clock: { now: () => now },
  })));
  await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "other" });
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

async function gatewayToken(gateway = "default", body: object = {}): Promise<string> {
  const answer = await server.api("POST", `/accounts/default/ai-gateway/gateways/${gateway}/tokens`, body);
  return (answer.body as { result: { token: string } }).result.token;
}

function call(headers: Record<string, string> = {}) {
  return post(server, "openai/chat/completions", {
    headers: { authorization: "Bearer provider-key", ...headers },
  });
}

describe("by setting and header", () => {
  it("setting on, valid token: the call is served", async () => {
    await setGateway(server, { authentication: true });
    const answer = await call({ "gw-aig-authorization": `Bearer ${await gatewayToken()}` });
    expect(answer.status).toBe(200);
    expect(provider.requests).toHaveLength(1);
  });

  it("setting on, no header: the call is refused", async () => {
    await setGateway(server, { authentication: true });
    const answer = await call();
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toEqual(REFUSAL);
    expect(answer.headers).toMatchObject({
      "content-type": expect.stringContaining("application/json") as string,
      "gw-aig-error-origin": "gateway",
      // The body is fixed, so the remedy is here.
      "www-authenticate":
        'Bearer realm="default", error_description="send a token of this gateway in gw-aig-authorization; `signalbox gateway token default` creates one"',
    });
    expect(answer.headers["gw-aig-log-id"]).toBeUndefined();
    expect(provider.requests).toHaveLength(0);
  });

  it.each([
    ["a token", async () => `Bearer ${await gatewayToken()}`],
    ["a wrong token", async () => "Bearer nonsense"],
  ])("setting off, %s: the call is served", async (_, header) => {
    await setGateway(server, { authentication: false });
    expect((await call({ "gw-aig-authorization": await header() })).status).toBe(200);
  });

  it("setting off, no header: the call is served", async () => {
    await setGateway(server, { authentication: false });
    expect((await call()).status).toBe(200);
  });

  it("a change of the setting takes effect immediately, in both directions", async () => {
    for (const authentication of [true, false, true]) {
      await setGateway(server, { authentication });
      expect((await call()).status).toBe(authentication ? 401 : 200);
    }
  });
});

describe("accepted tokens", () => {
  beforeAll(() => setGateway(server, { authentication: true }));

  const bad: [string, () => Promise<Record<string, string>>][] = [
    ["missing", async () => ({})],
    ["malformed", async () => ({ "gw-aig-authorization": await gatewayToken() })],
    ["unknown", async () => ({ "gw-aig-authorization": `Bearer ${generateToken()}` })],
    [
      "expired",
      async () => {
        const token = await gatewayToken("default", { expires_at: new Date(now + 1000).toISOString() });
        now += 2000;
        return { "gw-aig-authorization": `Bearer ${token}` };
      },
    ],
    [
      "revoked",
      async () => {
        const answer = await server.api("POST", "/accounts/default/ai-gateway/gateways/default/tokens", {});
        const { id, token } = (answer.body as { result: { id: string; token: string } }).result;
        await server.api("DELETE", `/accounts/default/tokens/${id}`);
        return { "gw-aig-authorization": `Bearer ${token}` };
      },
    ],
    ["of another gateway", async () => ({ "gw-aig-authorization": `Bearer ${await gatewayToken("other")}` })],
    [
      "without the permission",
      async () => ({ "gw-aig-authorization": `Bearer ${await server.token(["gateway.edit", "tags.edit"])}` }),
    ],
  ];

  it.each(bad)("a token that is invalid (%s) gets the same refusal", async (_, headers) => {
    const answer = await call(await headers());
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body)).toEqual(REFUSAL);
    expect(provider.requests).toHaveLength(0);
  });

  it("a token of another account is refused", async () => {
    await server.api("POST", "/accounts", { id: "elsewhere" });
    const token = await server.token(["gateway.run"], { account: "elsewhere" });
    expect((await call({ "gw-aig-authorization": `Bearer ${token}` })).status).toBe(401);
  });

  it("the alternative header name, account tokens with Run permission and the root token are accepted", async () => {
    expect((await call({ "cf-aig-authorization": `Bearer ${await gatewayToken()}` })).status).toBe(200);
    const token = await server.token(["gateway.run"]);
    expect((await call({ "gw-aig-authorization": `bearer ${token}` })).status).toBe(200);
    expect((await call({ "gw-aig-authorization": `Bearer ${ROOT_TOKEN}` })).status).toBe(200);
  });

  it("a valid token is accepted in the place of the provider's key, and refused in any other header", async () => {
    expect((await call({ authorization: `Bearer ${await gatewayToken()}` })).status).toBe(200);
    expect(provider.requests[0]?.headers.authorization).toBeUndefined();
    expect((await call({ "x-anything": await gatewayToken() })).status).toBe(401);
  });

  it("two tokens in one request are refused", async () => {
    const token = await gatewayToken();
    const answer = await call({ "gw-aig-authorization": `Bearer ${token}, Bearer ${token}` });
    expect(answer.status).toBe(401);
  });

  it("a token is shown once, with the Run permission and its gateway", async () => {
    const made = await server.api("POST", "/accounts/default/ai-gateway/gateways/default/tokens", {
      name: "once",
    });
    const { id, token } = (made.body as { result: { id: string; token: string } }).result;
    expect(made.body.result).toMatchObject({
      name: "once",
      permissions: ["gateway.run"],
      gateway_id: "default",
    });
    const read = await server.api("GET", `/accounts/default/tokens/${id}`);
    expect(JSON.stringify(read.body)).not.toContain(token);
    const list = await server.api("GET", "/accounts/default/tokens");
    expect(JSON.stringify(list.body)).not.toContain(token);
  });

  it("the refusal is sent after the headers, before the body arrives", async () => {
    const head = `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n`;
    const text = await rawExchange(server, head, /"message":"Unauthorized"\}$/);
    expect(text).toMatch(/^HTTP\/1\.1 401 /);
    expect(text).toMatch(/\r\nconnection: close\r\n/i);
    expect(JSON.parse(text.slice(text.indexOf("\r\n\r\n") + 4))).toEqual(REFUSAL);
  });

  it("Expect: 100-continue is answered with the refusal, or with 100 for an authorized caller", async () => {
    const head = (token: string) =>
      `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: ${CHAT.length}\r\n${token}\r\n`;
    expect(await rawExchange(server, head(""), /\}$/)).toMatch(/^HTTP\/1\.1 401 /);
    const token = `gw-aig-authorization: Bearer ${await gatewayToken()}\r\n`;
    expect(await rawExchange(server, head(token), /\r\n\r\n$/)).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\n$/);
  });

  it("the connection stays open after a refusal if the body is small", async () => {
    const one = `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\ncontent-length: ${CHAT.length}\r\n\r\n${CHAT}`;
    const text = await rawExchange(server, one + one, /(HTTP\/1\.1 401 [^]*){2}"Unauthorized"\}$/);
    expect(text.match(/HTTP\/1\.1 401 /g)).toHaveLength(2);
  });

  it("the setting covers the universal endpoint and every method and path", async () => {
    for (const [method, path] of [
      ["POST", "/v1/default/default"],
      ["GET", callPath("openai/models")],
      ["DELETE", callPath("openai/files/1")],
      ["POST", callPath("no-such-provider/x")],
    ] as const) {
      expect((await send(server, method, path)).status).toBe(401);
    }
  });
});

describe("forwarded credentials", () => {
  it("gateway headers and cookies are not sent upstream; the provider's credential is", async () => {
    await setGateway(server, { authentication: true });
    const token = await gatewayToken();
    await call({
      "gw-aig-authorization": `Bearer ${token}`,
      "cf-aig-metadata": '{"user":"u1"}',
      "gw-aig-event-id": "e1",
      cookie: "session=secret",
      "x-forwarded-for": "10.1.2.3",
      "x-own": "kept",
    });
    const [seen] = provider.requests;
    expect(seen?.headers).toMatchObject({ authorization: "Bearer provider-key", "x-own": "kept" });
    expect(Object.keys(seen?.headers ?? {}).filter((name) => /aig|cookie|forwarded/.test(name))).toEqual([]);
    expect(JSON.stringify(seen)).not.toContain(token);
  });

  it("a refusal of the gateway differs from a refusal of the provider", async () => {
    await setGateway(server, { authentication: true });
    provider.answer = (_, response) =>
      sendJson(response, 401, { error: { message: "bad key" } }, { "gw-aig-error-origin": "gateway" });
    const answer = await call({ "gw-aig-authorization": `Bearer ${await gatewayToken()}` });
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(answer).toMatchObject({ status: 401, body: '{"error":{"message":"bad key"}}' });
    expect(answer.headers["gw-aig-error-origin"]).toBe("provider");
    expect((await call()).headers["gw-aig-error-origin"]).toBe("gateway");
  });

  it("no credential is logged", async () => {
    const token = await gatewayToken();
    await call({ "gw-aig-authorization": `Bearer ${token}` });
    const logged = JSON.stringify(server.logs);
    expect(logged).not.toContain(token);
    expect(logged).not.toContain("provider-key");
  });
});
