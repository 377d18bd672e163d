/** Where a call's token may be, which one counts, and that no token reaches a provider from any place. */
import { generateToken } from "@signalbox/protocol";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ProviderPeer } from "../peers/provider.ts";
import {
  callPath,
  CHAT,
  rawExchange,
  readLogs,
  send,
  setGateway,
  startWithProvider,
} from "../support/gateway.ts";
import { ROOT_TOKEN, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let token: string;
let second: string;
let foreign: string;
let revoked: string;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: { providers: { openai: at, anthropic: at, "google-ai-studio": at, "azure-openai": at } },
  })));
  await server.api("POST", "/accounts", { id: "elsewhere" });
  token = await server.token(["gateway.run"]);
  second = await server.token(["gateway.run"]);
  foreign = await server.token(["gateway.run"], { account: "elsewhere" });
  const made = await server.api("POST", "/accounts/default/tokens", {
    name: "x",
    permissions: ["gateway.run"],
  });
  const { id, token: text } = (made.body as { result: { id: string; token: string } }).result;
  revoked = text;
  await server.api("DELETE", `/accounts/default/tokens/${id}`);
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

interface Place {
  readonly name: string;
  readonly headers: (text: string) => Record<string, string>;
  readonly query: (text: string) => string;
}

const header = (name: string, prefix = ""): Place => ({
  name,
  headers: (text) => ({ [name]: prefix + text }),
  query: () => "",
});

const KEY_PLACES: readonly Place[] = [
  header("authorization", "Bearer "),
  header("x-api-key"),
  header("x-goog-api-key"),
  header("api-key"),
  header("sec-websocket-protocol", "realtime, gw-aig-authorization."),
  { name: "?key=", headers: () => ({}), query: (text) => `?alt=sse&key=${text}` },
  {
    name: "?key=, encoded",
    headers: () => ({}),
    query: (text) => `?key=%73${text.slice(1)}&alt=sse`,
  },
];

const call = (headers: Record<string, string>, query = "") =>
  send(server, "POST", callPath(`openai/chat/completions${query}`), {
    body: CHAT,
    headers: { "content-type": "application/json", ...headers },
  });

function expectNothingLeaked(...texts: readonly string[]): void {
  const sent = JSON.stringify(provider.requests);
  for (const text of texts) expect(sent).not.toContain(text);
}

describe.each([true, false])("with authentication %s", (authentication) => {
  beforeAll(() => setGateway(server, { authentication }));

  it.each(KEY_PLACES)("a token in $name identifies the call and stays here", async (place) => {
    const answer = await call(place.headers(token), place.query(token));
    expect(answer.status).toBe(200);
    expect(provider.requests).toHaveLength(1);
    expectNothingLeaked(token, token.slice(4));
    const [row] = await readLogs(server);
    expect(row?.["authentication"]).toBe(true);
    expect(provider.requests[0]?.url).toBe(
      place.query("").includes("alt=sse") ? "/v1/chat/completions?alt=sse" : "/v1/chat/completions",
    );
  });

  it.each(KEY_PLACES)("a wrong, revoked or foreign token in $name is refused", async (place) => {
    for (const text of [generateToken(), revoked, foreign]) {
      expect((await call(place.headers(text), place.query(text))).status).toBe(401);
    }
    expect(provider.requests).toEqual([]);
  });

  it.each(KEY_PLACES)("another token in $name than in the gateway's header is refused", async (place) => {
    const own = { "gw-aig-authorization": `Bearer ${token}` };
    expect((await call({ ...own, ...place.headers(second) }, place.query(second))).status).toBe(401);
    expect(provider.requests).toEqual([]);
    expect((await call({ ...own, ...place.headers(token) }, place.query(token))).status).toBe(200);
    expectNothingLeaked(token);
  });

  it("two tokens in two places of a provider's key are refused, the same token twice is not", async () => {
    expect((await call({ "x-api-key": token, "api-key": second })).status).toBe(401);
    expect((await call({ "x-api-key": token }, `?key=${second}`)).status).toBe(401);
    expect((await call({}, `?key=${token}&key=${second}`)).status).toBe(401);
    expect(provider.requests).toEqual([]);
    expect((await call({ "x-api-key": token, "api-key": token }, `?key=${token}`)).status).toBe(200);
    expectNothingLeaked(token);
  });

  it("a second Authorization or x-api-key header with another token is refused", async () => {
    for (const name of ["authorization: Bearer ", "x-api-key: "]) {
      const bytes = `POST ${callPath("openai/chat/completions")} HTTP/1.1\r\nhost: x\r\n${name}${token}\r\n${name}${second}\r\ncontent-type: application/json\r\ncontent-length: ${CHAT.length}\r\n\r\n${CHAT}`;
      expect(await rawExchange(server, bytes, /\}$/)).toMatch(/^HTTP\/1\.1 401 /);
    }
    expect(provider.requests).toEqual([]);
  });

  it("a token beside a provider's key in another header keeps that key", async () => {
    const answer = await call({ "x-api-key": token, authorization: "Bearer provider-key" });
    expect(answer.status).toBe(200);
    expect(provider.requests[0]?.headers).toMatchObject({ authorization: "Bearer provider-key" });
    expectNothingLeaked(token);
  });

  it.each([
    ["authorization without scheme", (text: string) => ({ authorization: text })],
    ["basic authorization", (text: string) => ({ authorization: `Basic ${btoa(`x:${text}`)}` })],
    ["part of a key", (text: string) => ({ "x-api-key": `x${text}` })],
    ["another header", (text: string) => ({ "x-anything": text })],
  ])("a token in %s is refused", async (_, headers) => {
    const own = { "gw-aig-authorization": `Bearer ${token}` };
    expect((await call({ ...own, ...headers(token) })).status).toBe(401);
    expect(provider.requests).toEqual([]);
  });

  it("the root token in the place of a provider's key is refused", async () => {
    for (const place of KEY_PLACES.filter(({ name }) => !/protocol|encoded/.test(name))) {
      expect((await call(place.headers(ROOT_TOKEN), place.query(ROOT_TOKEN))).status).toBe(401);
    }
    expect(provider.requests).toEqual([]);
  });
});

describe("with authentication off", () => {
  beforeAll(() => setGateway(server, { authentication: false }));

  it("a wrong token in the gateway's own header is ignored, and the call has no token", async () => {
    for (const text of ["nonsense", generateToken(), revoked, foreign]) {
      expect((await call({ "gw-aig-authorization": `Bearer ${text}` })).status).toBe(200);
      expect((await readLogs(server))[0]?.["authentication"]).toBe(false);
    }
    expectNothingLeaked(revoked, foreign);
  });

  it("a wrong token in the gateway's own header contradicts no token in the place of a provider's key", async () => {
    for (const text of [generateToken(), revoked, foreign]) {
      const headers = { "gw-aig-authorization": `Bearer ${text}`, authorization: `Bearer ${token}` };
      expect((await call(headers)).status).toBe(200);
      expect((await readLogs(server))[0]?.["authentication"]).toBe(true);
    }
    // Of two valid tokens with different rules neither can be chosen.
    const both = { "gw-aig-authorization": `Bearer ${second}`, authorization: `Bearer ${token}` };
    expect((await call(both)).status).toBe(401);
    expectNothingLeaked(token, second, revoked, foreign);
  });

  it("a valid token keeps its own rules, and whoever creates one with rules is told that callers may leave it out", async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "narrow",
      permissions: ["gateway.run"],
      models: ["openai/another-model"],
    });
    expect(body.messages).toEqual([expect.stringContaining("gateway default: authentication is off")]);
    const headers = { "gw-aig-authorization": `Bearer ${body.result.token}` };
    expect((await call(headers)).status).toBe(403);
    expect((await call({})).status).toBe(200);
    const path = "/accounts/default/ai-gateway/gateways/default/tokens";
    const limited = await server.api("POST", path, { models: ["openai/another-model"] });
    expect(limited.body.messages).toHaveLength(1);
    expect((await server.api("POST", path, {})).body.messages).toEqual([]);
    await setGateway(server, { authentication: true });
    expect((await server.api("POST", path, { models: ["openai/x"] })).body.messages).toEqual([]);
    await setGateway(server, { authentication: false });
  });

  it("a valid token in the gateway's own header identifies the call", async () => {
    expect((await call({ "gw-aig-authorization": `Bearer ${token}` })).status).toBe(200);
    expect((await readLogs(server))[0]?.["authentication"]).toBe(true);
  });
});
