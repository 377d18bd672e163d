/** A name of a model as long as a body may be, and as many names as a body has room for: prices, rules and totals are looked up by names. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { callPath, readLogs, send, setGateway, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

const LONG = `gpt-4o-${"x".repeat(200_000)}`;
const messages = [{ role: "user", content: "Hello" }];
const CHAT_ANSWER = {
  id: "a",
  object: "chat.completion",
  model: "gpt-4o-mini",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 },
};

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: { openai: at, anthropic: at, "google-ai-studio": at },
      gateway: { allowPrivateCustomProviders: true },
    },
  })));
  const { status } = await server.api("POST", "/accounts/default/ai-gateway/custom-providers", {
    name: "Meshes",
    slug: "meshes",
    base_url: provider.url,
    enable: true,
  });
  expect(status).toBe(200);
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
  provider.answer = (_, response) => sendJson(response, 200, CHAT_ANSWER);
});

const call = (path: string, body: unknown, headers: Record<string, string> = {}) =>
  send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", authorization: "Bearer key", ...headers },
  });
const longestName = async () =>
  Math.max(...(await readLogs(server)).map(({ model }) => (typeof model === "string" ? model.length : 0)));

it.each([
  ["chat of a provider", callPath("openai/chat/completions"), { model: LONG, messages }],
  ["messages of a provider", callPath("anthropic/v1/messages"), { model: LONG, max_tokens: 5, messages }],
  ["embeddings of a provider", callPath("openai/embeddings"), { model: LONG, input: "Hello" }],
  ["chat of any provider", "/v1/chat/completions", { model: `openai/${LONG}`, messages }],
  ["chat by a usual name", "/v1/chat/completions", { model: LONG, messages }],
  ["responses of any provider", "/v1/responses", { model: `openai/${LONG}`, input: "Hello" }],
  ["messages of any provider", "/v1/messages", { model: `anthropic/${LONG}`, max_tokens: 5, messages }],
  ["chat without a whole body", callPath("openai/chat/completions"), { messages, model: LONG }],
])("%s refuses it, and nothing is forwarded", async (_, path, body) => {
  const { status, body: text } = await call(path, body);
  expect(status).toBe(400);
  expect(text.length).toBeLessThan(1000);
  expect(provider.requests).toHaveLength(0);
});

it("a provider that an operator named receives what is no name of a model, and its call has none", async () => {
  const { status } = await call(callPath("custom-meshes/paint"), { model: LONG });
  expect(status).toBe(200);
  expect(JSON.parse(String(provider.requests[0]?.body))).toEqual({ model: LONG });
  await expect.poll(longestName).toBeLessThanOrEqual(512);
});

it("a provider that answers with such a name gives the call no name", async () => {
  provider.answer = (_, response) => sendJson(response, 200, { ...CHAT_ANSWER, model: LONG });
  expect((await call(callPath("custom-meshes/chat/completions"), { messages })).status).toBe(200);
  expect((await call(callPath("openai/chat/completions"), { model: "gpt-4o-mini", messages })).status).toBe(
    200,
  );
  await expect.poll(async () => (await readLogs(server)).length).toBeGreaterThanOrEqual(3);
  expect(await longestName()).toBeLessThanOrEqual(512);
});

it("a part of a universal request with such a name fails, and the next one is tried", async () => {
  const step = (model: string) => ({
    provider: "openai",
    endpoint: "chat/completions",
    headers: { authorization: "Bearer key", "content-type": "application/json" },
    query: { model, messages },
  });
  const { status } = await call("/v1/default/default", [step(LONG), step("gpt-4o-mini")]);
  expect([200, 400]).toContain(status);
  expect(provider.requests.every(({ body }) => body.length < 1000)).toBe(true);
  expect(await longestName()).toBeLessThanOrEqual(512);
});

describe("a request that names thousands of models", () => {
  const models = Array.from({ length: 5000 }, (_, i) => `openai/gpt-${i}`);
  const tools = models.map((model) => ({ type: "image_generation", model }));
  const form = `${models.map((model) => `--x\r\ncontent-disposition: form-data; name="model"\r\n\r\n${model}\r\n`).join("")}--x--`;
  let token: string;
  beforeAll(async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "limited",
      permissions: ["gateway.run"],
      models: ["openai/gpt-*"],
    });
    ({ token } = (body as { result: { token: string } }).result);
    await setGateway(server, { authentication: true }, "closed");
    await setGateway(
      server,
      { spend_limits: { rules: [{ limitType: "cost", limit: 1000, window: "day" }] } },
      "capped",
    );
  });

  it.each([
    [
      "with a limit",
      callPath("openai/chat/completions", "capped"),
      { model: "gpt-4o-mini", models, messages },
      {},
    ],
    [
      "with a limit, in tools",
      callPath("openai/responses", "capped"),
      { model: "gpt-4o-mini", tools, input: "Hi" },
      {},
    ],
    [
      "with a token for some models",
      callPath("openai/chat/completions", "closed"),
      { model: "gpt-4o-mini", models, messages },
      { "gw-aig-authorization": "the token" },
    ],
    [
      "with a key for the cache",
      callPath("openai/chat/completions"),
      { model: "gpt-4o-mini", models, messages },
      { "gw-aig-cache-ttl": "60", "gw-aig-cache-key": "k" },
    ],
  ])("is refused %s", async (_, path, body, headers: Record<string, string>) => {
    const own = Object.entries(headers).map(([name, value]) => [
      name,
      value === "the token" ? `Bearer ${token}` : value,
    ]);
    const { status, body: text } = await call(path, body, Object.fromEntries(own) as Record<string, string>);
    expect(text).toContain("at most 50 models");
    expect(status).toBe(400);
    expect(provider.requests).toHaveLength(0);
  });

  it("is refused with a limit, in a form", async () => {
    const { status } = await send(server, "POST", callPath("openai/audio/transcriptions", "capped"), {
      body: form,
      headers: { "content-type": "multipart/form-data; boundary=x", authorization: "Bearer key" },
    });
    expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(provider.requests).toHaveLength(0);
  });

  it("is forwarded where nobody looks the models up", async () => {
    expect(
      (await call(callPath("openai/chat/completions"), { model: "gpt-4o-mini", models, messages })).status,
    ).toBe(200);
    expect(provider.requests).toHaveLength(1);
  });
});
