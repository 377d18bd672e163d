/** What a call used and cost: in its row, in its headers and trailers, and through clients. Limits of tokens (virtual keys) and of accounts. */
import { once } from "node:events";
import { type IncomingMessage, request as httpRequest } from "node:http";
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { post, readLogs, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const USAGE = { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 };
const BODY = JSON.stringify({ model: "m", max_tokens: 6 });
const ANSWER = {
  id: "c",
  object: "chat.completion",
  model: "m",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: USAGE,
};

let provider: ProviderPeer;
let server: TestServer;
let now = Date.UTC(2030, 0, 1, 12);
beforeAll(async () => {
  provider = await startProvider(() => undefined);
  server = await startTestServer({
    file: {
      providers: { openai: { baseUrl: provider.url }, anthropic: { baseUrl: provider.url } },
      gateway: { prices: { openai: { m: { in: 1_000_000, out: 1_000_000 } } } },
    },
    clock: { now: () => now },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(async () => {
  now += 86_400_000;
  provider.answer = (_, response) => sendJson(response, 200, ANSWER);
  await setGateway(server, { spend_limits: null, rate_limiting_limit: null });
});

const call = (headers: Record<string, string> = {}, body = BODY) =>
  post(server, "openai/chat/completions", { body, headers });
const stream = (response: import("node:http").ServerResponse) =>
  sendEvents(response, [
    'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hi"}}]}\n\n',
    `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":${JSON.stringify(USAGE)}}\n\n`,
    "data: [DONE]\n\n",
  ]);

describe("headers", () => {
  it("a response states who answered, what it used and cost, and what is left", async () => {
    await setGateway(server, {
      spend_limits: {
        rules: [{ id: "r", limitType: "cost", limit: 100, window: "month", timezone: "Europe/Berlin" }],
      },
    });
    const { headers } = await call();
    expect(headers).toMatchObject({
      "gw-aig-provider": "openai",
      "gw-aig-model": "m",
      "gw-aig-cost": "10",
      "gw-aig-tokens-in": "4",
      "gw-aig-tokens-out": "6",
      "gw-aig-budget-remaining": "90",
      "gw-aig-budget-reset": "2030-01-31T23:00:00.000Z",
    });
    expect(Number(headers["gw-aig-overhead-ms"])).toBeGreaterThan(0);
  });

  it("a response that arrives in pieces states them as well", async () => {
    provider.answer = async (_, response) => {
      const text = JSON.stringify(ANSWER);
      response.writeHead(200, { "content-type": "application/json" });
      response.flushHeaders();
      response.write(text.slice(0, 20));
      await new Promise((resolve) => setImmediate(resolve));
      response.end(text.slice(20));
    };
    const { headers, body } = await call();
    expect(headers["gw-aig-cost"]).toBe("10");
    expect(JSON.parse(body)).toEqual(ANSWER);
  });

  it("a model that is no header value is left out", async () => {
    const { status, headers } = await call({}, JSON.stringify({ model: "mödel\r\nx: y" }));
    expect(status).toBe(200);
    expect(headers["gw-aig-model"]).toBeUndefined();
  });

  it("a stream states them in trailers, for clients that accept trailers", async () => {
    provider.answer = (_, response) => stream(response);
    const read = async (headers: Record<string, string>) => {
      const request = httpRequest({
        port: new URL(server.url).port,
        method: "POST",
        path: "/v1/default/default/openai/chat/completions",
        headers: { "content-type": "application/json", ...headers },
        agent: false,
      });
      request.end(JSON.stringify({ model: "m", max_tokens: 6, stream: true }));
      const [response] = (await once(request, "response")) as [IncomingMessage];
      response.resume();
      await once(response, "end");
      return response;
    };
    const asked = await read({ te: "trailers" });
    expect(asked.headers.trailer).toContain("gw-aig-cost");
    expect(asked.trailers).toMatchObject({
      "gw-aig-cost": "10",
      "gw-aig-tokens-in": "4",
      "gw-aig-tokens-out": "6",
    });
    const plain = await read({});
    expect(plain.headers.trailer).toBeUndefined();
    expect(plain.trailers).toEqual({});
  });

  it("clients read streams with trailers", async () => {
    provider.answer = (_, response) => stream(response);
    const openai = new OpenAI({
      apiKey: "k",
      baseURL: `${server.url}/v1/default/default/openai`,
      defaultHeaders: { te: "trailers" },
    });
    const chunks = await openai.chat.completions.create({ model: "m", stream: true, messages: [] });
    const seen = [];
    for await (const chunk of chunks) seen.push(chunk.choices.length);
    // The event with the usage was not asked for.
    expect(seen).toEqual([1]);
    const asking = await openai.chat.completions.create({
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [],
    });
    let usage: unknown = null;
    for await (const chunk of asking) usage = chunk.usage ?? usage;
    expect(usage).toEqual(USAGE);
    const anthropic = new Anthropic({
      apiKey: "k",
      baseURL: `${server.url}/v1/default/default/anthropic`,
      defaultHeaders: { te: "trailers" },
    });
    provider.answer = (_, response) =>
      sendJson(response, 200, { type: "message", usage: { input_tokens: 1, output_tokens: 1 } });
    expect(
      (await anthropic.messages.create({ model: "x", max_tokens: 1, messages: [] })).usage.input_tokens,
    ).toBe(1);
  });
});

describe("rows", () => {
  it.each([
    [
      "usage that the provider reports",
      USAGE,
      { usage: "reported", tokens_in: 4, tokens_out: 6, cost: 10, cost_estimated: false },
    ],
    [
      "usage of zero, which no call has",
      { prompt_tokens: 0, completion_tokens: 0 },
      { usage: "estimated", cost_estimated: true },
    ],
    ["no usage", undefined, { usage: "estimated", tokens_in: 10, cost_estimated: true }],
  ])("show %s", async (_, usage, expected) => {
    provider.answer = (__, response) => sendJson(response, 200, { ...ANSWER, usage });
    await call();
    expect((await readLogs(server))[0]).toMatchObject(expected);
  });

  it("show an unknown usage as unknown, and a failed call without usage as none", async () => {
    provider.answer = (_, response) => sendJson(response, 200, { data: [] });
    await post(server, "openai/images/generations", { body: '{"model":"nobody-knows-it"}' });
    expect((await readLogs(server))[0]).toMatchObject({
      usage: "unknown",
      tokens_in: null,
      tokens_out: null,
    });
    expect((await readLogs(server))[0]).not.toHaveProperty("cost");
    provider.answer = (_, response) => sendJson(response, 500, {});
    await call();
    expect((await readLogs(server))[0]).toMatchObject({ usage: "none", cost: 0 });
    const metrics = await (await fetch(`${server.url}/metrics`)).text();
    expect(metrics).toMatch(/signalbox_gateway_usage_unknown_total\{provider="openai",usage="unknown"\} 1/);
  });
});

describe("limits of tokens and accounts", () => {
  async function createToken(policy: object): Promise<string> {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "t",
      permissions: ["gateway.run"],
      ...policy,
    });
    return (body as { result: { token: string } }).result.token;
  }
  const by = (token: string) =>
    call({ "gw-aig-authorization": `Bearer ${token}`, authorization: "Bearer k" });

  it("a token's budget binds the token, on every gateway", async () => {
    const token = await createToken({ budgets: [{ limit: 20, window: "day" }] });
    const first = await by(token);
    expect(first.headers["gw-aig-budget-remaining"]).toBe("10");
    const refused = await by(token);
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2041,
      rule: "token budget-day",
      spent: 10,
      limit: 20,
    });
    expect((await call()).status).toBe(200);
  });

  it("a token's rates bind with the usual headers", async () => {
    const token = await createToken({ rate_limits: [{ type: "requests", limit: 2, interval: 60 }] });
    await by(token);
    await by(token);
    const refused = await by(token);
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2003,
      rule: "token requests-60",
      limit: 2,
    });
    expect(refused.headers).toMatchObject({
      "x-ratelimit-limit-requests": "2",
      "x-ratelimit-remaining-requests": "0",
    });
    expect(Number(refused.headers["retry-after"])).toBeGreaterThan(50);
    const tokens = await createToken({ rate_limits: [{ type: "tokens", limit: 26, interval: 60 }] });
    expect((await by(tokens)).status).toBe(200);
    expect((await by(tokens)).status).toBe(200);
    expect((await by(tokens)).headers["x-ratelimit-remaining-tokens"]).toBe("6");
  });

  it("a token's limit of parallel calls counts running ones only", async () => {
    const token = await createToken({ rate_limits: [{ type: "parallel", limit: 2 }] });
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    provider.answer = async (_, response) => {
      await released;
      sendJson(response, 200, ANSWER);
    };
    provider.requests.length = 0;
    const running = [by(token), by(token)];
    await expect.poll(() => provider.requests.length).toBe(2);
    expect((await by(token)).status).toBe(429);
    release();
    await Promise.all(running);
    expect((await by(token)).status).toBe(200);
  });

  it("an account's limit binds all of its gateways, and credit can be added", async () => {
    const rules = [{ id: "all", limitType: "cost", limit: 20, window: null }];
    await server.api("PUT", "/accounts/default/ai-gateway/limits", { rules });
    await server.api("POST", "/accounts/default/ai-gateway/gateways", { id: "second" });
    expect((await call()).status).toBe(200);
    const refused = await post(server, "openai/chat/completions", { body: BODY, gateway: "second" });
    expect(JSON.parse(refused.body)).toMatchObject({
      internalCode: 2041,
      rule: "account all",
      reset_at: null,
    });
    const credit = await server.api("POST", "/accounts/default/ai-gateway/limits/credit", { amount: 15 });
    expect(credit.body.result).toEqual({ rule: "all", limit: 35 });
    expect((await call()).status).toBe(200);
    const { body } = await server.api("GET", "/accounts/default/ai-gateway/budgets");
    expect(body.result.budgets).toMatchObject([
      { rule: "all", used: 20, limit: 35, remaining: 15, reset_at: null },
    ]);
    await server.api("DELETE", "/accounts/default/ai-gateway/limits");
    expect((await call()).status).toBe(200);
  });

  it("credit of a gateway and of a token can be added", async () => {
    await setGateway(server, {
      spend_limits: { rules: [{ id: "pre", limitType: "cost", limit: 1, window: null }] },
    });
    const gateway = "/accounts/default/ai-gateway/gateways/default";
    expect((await server.api("POST", `${gateway}/credit`, { rule: "other", amount: 5 })).status).toBe(400);
    expect((await server.api("POST", `${gateway}/credit`, { amount: 40 })).body.result).toEqual({
      rule: "pre",
      limit: 41,
    });
    expect((await call()).headers["gw-aig-budget-remaining"]).toBe("31");
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "t",
      permissions: ["gateway.run"],
      budgets: [{ limit: 1, window: null }],
    });
    const path = `/accounts/default/tokens/${(body as { result: { id: string } }).result.id}`;
    expect((await server.api("POST", `${path}/credit`, { amount: 2 })).body.result).toEqual({
      rule: "budget-total",
      limit: 3,
    });
    expect((await server.api("GET", `${path}/budgets`)).body.result.budgets).toMatchObject([
      { limit: 3, used: 0 },
    ]);
  });

  it("an account's prices count before those of the configuration", async () => {
    const prices = { openai: { m: { in: 2_000_000, out: 0 } } };
    expect((await server.api("PUT", "/accounts/default/ai-gateway/prices", { prices })).status).toBe(200);
    expect((await call()).headers["gw-aig-cost"]).toBe("8");
    const { body } = await server.api("GET", "/accounts/default/ai-gateway/prices?provider=openai&model=m");
    expect(body.result).toMatchObject({ prices, found: { source: "account", price: { in: 2_000_000 } } });
    expect(
      (
        await server.api("PUT", "/accounts/default/ai-gateway/prices", {
          prices: { openai: { m: { in: -1, out: 0 } } },
        })
      ).status,
    ).toBe(400);
    await server.api("DELETE", "/accounts/default/ai-gateway/prices");
    expect((await call()).headers["gw-aig-cost"]).toBe("10");
  });
});
