/** A limited caller starts work whose answer does not contain its cost, hides the method, or sends many calls at once. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendJson } from "../peers/provider.ts";
import { callPath, send, setGateway, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

/** One dollar for each token, for every model of the provider. */
const DOLLAR = { "*": { in: 1_000_000, out: 1_000_000 } };

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: { openai: at, anthropic: at, "google-ai-studio": at, replicate: at },
      gateway: {
        replayBodyBytes: 8192,
        prices: { openai: DOLLAR, anthropic: DOLLAR, "google-ai-studio": DOLLAR, replicate: DOLLAR },
      },
    },
  })));
  await setGateway(server, { authentication: true });
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
  provider.answer = (_, response) => sendJson(response, 200, { id: "r", status: "queued", usage: null });
});

async function newToken(dollars: number): Promise<{ token: string; spent: () => Promise<number> }> {
  const { body } = await server.api("POST", "/accounts/default/tokens", {
    name: "limited",
    permissions: ["gateway.run"],
    budgets: [{ limit: dollars, window: null }],
  });
  const { id, token } = body.result as { id: string; token: string };
  const spent = async () => {
    const state = await server.api("GET", `/accounts/default/tokens/${id}/budgets`);
    return (state.body.result as { budgets: { used: number }[] }).budgets[0]?.used ?? 0;
  };
  return { token, spent };
}

const call = (token: string, path: string, body: string | Buffer, headers: Record<string, string> = {}) =>
  send(server, "POST", path.startsWith("/") ? path : callPath(path), {
    body,
    headers: {
      "content-type": "application/json",
      "gw-aig-authorization": `Bearer ${token}`,
      authorization: "Bearer k",
      ...headers,
    },
  });

describe("a response that is written in the background", () => {
  const BACKGROUND = { model: "gpt", input: "hi", background: true };

  it.each([
    ["with an output limit", { ...BACKGROUND, max_output_tokens: 900 }, 900],
    ["without an output limit", BACKGROUND, 131_072],
    ["written in another way", JSON.stringify(BACKGROUND).replace("background", "b\\u0061ckground"), 131_072],
    ["beside a false one", `{"background":false,${JSON.stringify(BACKGROUND).slice(1)}`, 131_072],
    // What follows may refer to other input.
    [
      "at the end of a long body",
      `{${" ".repeat(20_000)}${JSON.stringify(BACKGROUND).slice(1)}`,
      1_048_576 + 131_072,
    ],
  ])("%s is charged with what it may cost", async (_, body, least) => {
    const text = typeof body === "string" ? body : JSON.stringify(body);
    const { token, spent } = await newToken(3_000_000);
    expect((await call(token, "openai/v1/responses", text)).status).toBe(200);
    expect(await spent()).toBeGreaterThanOrEqual(least);
    expect((await call(token, "/v1/responses", text.replace('"gpt"', '"openai/gpt"'))).status).toBe(200);
    expect(await spent()).toBeGreaterThanOrEqual(2 * least);
    const poor = await newToken(least / 2);
    expect((await call(poor.token, "openai/v1/responses", text)).status).toBe(429);
  });

  it("is charged with its usage if the answer has it, and others as before", async () => {
    provider.answer = (_, response) =>
      sendJson(response, 200, { object: "response", usage: { input_tokens: 3, output_tokens: 4 } });
    const { token, spent } = await newToken(1_000_000);
    await call(token, "openai/responses", JSON.stringify(BACKGROUND));
    await call(token, "openai/responses", JSON.stringify({ model: "gpt", input: "hi" }));
    expect(await spent()).toBe(14);
  });
});

it("the output limit at the beginning of a body that is only partly read is not believed", async () => {
  const padding = " ".repeat(20_000);
  const body = `{"model":"gpt","max_tokens":5,"messages":[],${padding}"max_tokens":100000}`;
  const poor = await newToken(1_048_576 + 1000);
  expect((await call(poor.token, "openai/chat/completions", body)).status).toBe(429);
  // Without any limit, neither: what is not read could be anything.
  const unlimited = body.replaceAll("max_tokens", "other");
  expect((await call(poor.token, "openai/chat/completions", unlimited)).status).toBe(429);
  expect(provider.requests).toEqual([]);
  const rich = await newToken(1_300_000);
  expect((await call(rich.token, "openai/chat/completions", body)).status).toBe(200);
});

it.each([
  "openai/v1/batches",
  "openai/v1/batches/",
  "openai/v1/batch/jobs",
  "openai/v1/fine_tuning/jobs",
  "openai/v1/videos",
  "openai/v1/threads/t1/runs",
  "anthropic/v1/messages/batches",
  "google-ai-studio/v1beta/models/gemini:batchGenerateContent",
])("a job at %s of which nothing is known has no price, even if every model has one", async (path) => {
  const { token } = await newToken(1_000_000);
  const answer = await call(token, path, '{"model":"gpt","input_file_id":"file-1"}');
  expect([answer.status, answer.body]).toEqual([429, expect.stringContaining("2042")]);
  expect(provider.requests.filter(({ method }) => method === "POST")).toEqual([]);
});

it("a model that is called files is not free", async () => {
  const { token, spent } = await newToken(1_000_000);
  await call(token, "replicate/v1/models/me/files/predictions", '{"input":{}}');
  expect(await spent()).toBeGreaterThan(0);
});

it("the method is the one that was sent", async () => {
  const { token } = await newToken(1);
  for (const name of ["x-http-method-override", "X-HTTP-Method", "x_method_override"]) {
    await send(server, "GET", callPath("openai/v1/chat/completions"), {
      headers: { "gw-aig-authorization": `Bearer ${token}`, authorization: "Bearer k", [name]: "POST" },
    });
  }
  for (const { headers } of provider.requests) {
    expect(Object.keys(headers).filter((name) => name.includes("method"))).toEqual([]);
  }
});

it("of 200 calls at once, those reach the provider that the budget covers", async () => {
  provider.answer = (_, response) =>
    void setImmediate(() =>
      sendJson(response, 200, {
        model: "gpt",
        choices: [],
        usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
      }),
    );
  const { token, spent } = await newToken(40);
  const body = JSON.stringify({ model: "gpt", max_tokens: 5, messages: [] });
  const statuses = await Promise.all(
    Array.from({ length: 200 }, async () => (await call(token, "openai/chat/completions", body)).status),
  );
  expect(statuses.filter((status) => status === 200)).toHaveLength(provider.requests.length);
  expect(provider.requests.length).toBeGreaterThan(0);
  expect(await spent()).toBe(10 * provider.requests.length);
  expect(await spent()).toBeLessThanOrEqual(40);
});

it("usage below zero, or a cost below zero, gives nothing back", async () => {
  const { token, spent } = await newToken(100);
  const body = JSON.stringify({ model: "gpt", max_tokens: 5, messages: [] });
  for (const usage of [
    { prompt_tokens: -50, completion_tokens: -50, total_tokens: -100 },
    { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2, cost: -40 },
    { prompt_tokens: 1, completion_tokens: 1, prompt_tokens_details: { cached_tokens: -90 } },
  ]) {
    const before = await spent();
    provider.answer = (_, response) => sendJson(response, 200, { model: "gpt", choices: [], usage });
    await call(token, "openai/chat/completions", body);
    expect(await spent()).toBeGreaterThan(before);
  }
});

it("a token of another account is refused at every door, and pays for nothing", async () => {
  await server.api("POST", "/accounts", { id: "other", name: "Other" });
  const { body } = await server.api("POST", "/accounts/other/tokens", {
    name: "foreign",
    permissions: ["gateway.run"],
  });
  const { token } = body.result as { token: string };
  const chat = JSON.stringify({ model: "openai/gpt", messages: [] });
  for (const path of [
    "/v1/chat/completions",
    "/v1/default/default/openai/chat/completions",
    "/v1/default/default/compat/chat/completions",
    "/accounts/default/ai/v1/chat/completions",
    "/v1/default/default",
  ]) {
    for (const place of [
      { "gw-aig-authorization": `Bearer ${token}` },
      { authorization: `Bearer ${token}` },
      { "x-api-key": token },
      { "sec-websocket-protocol": `gw-aig-authorization.${token}` },
    ]) {
      const answer = await send(server, "POST", path, {
        body: chat,
        headers: { "content-type": "application/json", ...(place as Record<string, string>) },
      });
      expect([path, place, answer.status]).toEqual([path, place, 401]);
    }
  }
  expect(provider.requests).toEqual([]);
});

describe("input that the request only refers to", () => {
  it.each([
    ["an earlier response", { previous_response_id: "resp_1" }],
    ["a file", { input: [{ role: "user", content: [{ type: "input_file", file_id: "file-1" }] }] }],
    ["a tool of the provider", { tools: [{ type: "web_search" }] }],
  ])("%s: parallel calls do not exceed the budget by more than one of them", async (_, fields) => {
    const usage = { input_tokens: 900, output_tokens: 100, total_tokens: 1000 };
    provider.answer = (_request, response) =>
      sendJson(response, 200, { id: "r", object: "response", model: "gpt", usage });
    const { token, spent } = await newToken(1500);
    const body = JSON.stringify({ model: "gpt", input: "hi", max_output_tokens: 100, ...fields });
    await Promise.all(Array.from({ length: 12 }, () => call(token, "openai/responses", body)));
    // One runs at a time, so a second one may follow the first.
    if (provider.requests.length === 1) await call(token, "openai/responses", body);
    expect([provider.requests.length, await spent()]).toEqual([2, 2000]);
    expect((await call(token, "openai/responses", body)).status).toBe(429);
  });

  it("behind a file that is too large to be read first: the call needs a budget for the whole context window", async () => {
    const { token, spent } = await newToken(5000);
    const image = `data:image/png;base64,${"A".repeat(20_000)}`;
    const input = [{ role: "user", content: [{ type: "input_image", image_url: image }] }];
    const body = JSON.stringify({ model: "gpt", max_output_tokens: 100, input, previous_response_id: "r" });
    expect((await call(token, "openai/responses", body)).status).toBe(429);
    expect([provider.requests.length, await spent()]).toEqual([0, 0]);
  });
});
