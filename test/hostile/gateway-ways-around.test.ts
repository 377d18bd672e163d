/** A limited caller looks for a way around its limits where two features meet: routes, hedges, retries, doors, the cache. */
import { request as httpRequest } from "node:http";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { type ProviderPeer, sendEvents, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

/** One dollar for each token. */
const DOLLAR = { in: 1_000_000, out: 1_000_000 };
const USAGE = { prompt_tokens: 4, completion_tokens: 6, total_tokens: 10 };

let provider: ProviderPeer;
let other: ProviderPeer;
let server: TestServer;
let now = Date.UTC(2030, 0, 1, 12);
beforeAll(async () => {
  provider = await startProvider(() => undefined);
  other = await startProvider(() => undefined);
  const at = { baseUrl: provider.url };
  server = await startTestServer({
    clock: { now: () => now },
    steadyClock: { now: () => now },
    file: {
      providers: {
        openai: at,
        anthropic: at,
        "google-ai-studio": at,
        "workers-ai": at,
        groq: { baseUrl: other.url },
      },
      gateway: {
        prices: {
          openai: { dear: DOLLAR, "gpt-x": DOLLAR },
          groq: { dear: DOLLAR },
          "google-ai-studio": { dear: DOLLAR },
          "workers-ai": { "@cf/dear": DOLLAR },
        },
      },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
  await other.close();
});
beforeEach(async () => {
  now += 86_400_000;
  for (const peer of [provider, other]) {
    peer.requests.length = 0;
    peer.answer = (_, response) => sendJson(response, 200, { model: "dear", choices: [], usage: USAGE });
  }
  await setGateway(server, { spend_limits: null, cache_ttl: null, authentication: false });
  await server.api("DELETE", "/accounts/default/ai-gateway/gateways/default/circuits");
});

const GATEWAY = "/accounts/default/ai-gateway/gateways/default";
const setLimit = (limit: number, more: object = {}) =>
  setGateway(server, {
    spend_limits: { rules: [{ id: "own", limitType: "cost", limit, window: 3600, ...more }] },
  });
const readBudget = async () => {
  const { body } = await server.api("GET", `${GATEWAY}/budgets`);
  return (body as { result: { budgets: [{ used: number; reserved: number }] } }).result.budgets[0];
};
/** In dollars, with the prices above. */
const readUsed = async () => (await readBudget()).used;

const JSON_TYPE = { "content-type": "application/json" };
const call = (path: string, body: object, headers: Record<string, string> = {}) =>
  send(server, "POST", path, { headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) });
const chat = (headers: Record<string, string> = {}, fields: object = {}) =>
  call(callPath("openai/chat/completions"), { model: "dear", max_tokens: 6, ...fields }, headers);
const codeOf = ({ body }: { body: string }) => (JSON.parse(body) as { internalCode: number }).internalCode;

async function makeToken(fields: object): Promise<Record<string, string>> {
  const { status, body } = await server.api("POST", "/accounts/default/tokens", {
    name: "limited",
    permissions: ["gateway.run"],
    ...fields,
  });
  expect(status).toBe(200);
  return { "gw-aig-authorization": `Bearer ${(body as { result: { token: string } }).result.token}` };
}

const to = (elementId: string) => ({ elementId });
const START = { id: "start", type: "start", outputs: { next: to("first") } };
const END = { id: "end", type: "end", outputs: {} };
const model = (id: string, slug: string, fallback = "end", properties: object = {}) => ({
  id,
  type: "model",
  properties: { provider: slug, model: "dear", retries: 0, timeout: 600_000, ...properties },
  outputs: { success: to("end"), fallback: to(fallback) },
});
let made = 0;
async function makeRoute(...elements: object[]): Promise<string> {
  made += 1;
  const name = `r${made}`;
  const { status, body } = await server.api("POST", `${GATEWAY}/routes`, {
    name,
    elements: [START, ...elements, END],
  });
  expect([status, body]).toMatchObject([200, { success: true }]);
  return name;
}

const callRoute = (name: string, headers: Record<string, string> = {}, fields: object = {}) =>
  call(
    callPath("compat/chat/completions"),
    { model: `dynamic/${name}`, max_tokens: 6, messages: [{ role: "user", content: "Hi" }], ...fields },
    headers,
  );
const callUniversalRoute = (
  name: string,
  headers: Record<string, string> = {},
  endpoint = "chat/completions",
) =>
  call(
    "/v1/default/default",
    [{ provider: "compat", endpoint, query: { model: `dynamic/${name}`, max_tokens: 6, messages: [] } }],
    headers,
  );

describe("routes", () => {
  const plan = {
    id: "first",
    type: "conditional",
    properties: { condition: { "metadata.plan": { $eq: "paid" } } },
    outputs: { true: to("paid"), false: to("free") },
  };

  it.each([
    ["a door", callRoute],
    ["the universal endpoint", callUniversalRoute],
  ])("decide by the token's metadata, whatever the caller states, at %s", async (_, run) => {
    const name = await makeRoute(plan, model("paid", "openai"), model("free", "groq"));
    const token = await makeToken({ metadata: { plan: "free" } });
    const { status } = await run(name, { ...token, "gw-aig-metadata": '{"plan":"paid"}' });
    expect([status, provider.requests.length, other.requests.length]).toEqual([200, 0, 1]);
  });

  it("count money by the gateway's prices, not by the caller's", async () => {
    const budget = {
      id: "first",
      type: "rate",
      properties: { limitType: "cost", limit: 15, key: "metadata.user", window: 3600 },
      outputs: { success: to("large") },
    };
    const name = await makeRoute(budget, model("large", "openai"));
    const free = { "gw-aig-custom-cost": '{"total_cost":0}' };
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await callRoute(name, free)).status);
    expect([statuses, provider.requests.length]).toEqual([[200, 200, 429, 429], 2]);
  });

  it("send no token of this service upstream in the endpoint of a step", async () => {
    const name = await makeRoute(model("first", "openai"));
    const token = (await makeToken({}))["gw-aig-authorization"]?.slice(7) ?? "";
    const { status } = await callUniversalRoute(name, {}, `chat/completions?key=${token}`);
    expect([status >= 400, provider.requests.length]).toEqual([true, 0]);
  });

  it("count later steps under the rules of those steps", async () => {
    const name = await makeRoute(model("first", "openai", "second"), model("second", "groq"));
    await setGateway(server, {
      spend_limits: {
        rules: [
          {
            id: "money",
            limitType: "cost",
            limit: 1,
            window: 3600,
            provider: { mode: "filter", values: ["openai"] },
          },
          {
            id: "rate",
            limitType: "requests",
            limit: 1,
            window: 3600,
            provider: { mode: "filter", values: ["groq"] },
          },
        ],
      },
    });
    expect((await callRoute(name)).status).toBe(200);
    expect((await callRoute(name)).status).toBe(429);
    expect([provider.requests.length, other.requests.length]).toEqual([0, 1]);
  });
});

describe("several attempts of one call", () => {
  it("a second attempt beside the first is sent only if the budget has room for both", async () => {
    await setLimit(30);
    const answered = new Promise<void>((resolve) => {
      provider.answer = (_, response) => {
        setTimeout(() => {
          sendJson(response, 200, { model: "dear", choices: [], usage: USAGE });
          resolve();
        }, 150);
      };
    });
    // Each attempt may cost 17 dollars.
    expect((await chat({ "gw-aig-hedge-after": "20" })).status).toBe(200);
    await answered;
    expect([provider.requests.length, await readUsed()]).toEqual([1, 10]);
  });

  it("are all charged when the caller leaves", async () => {
    await setLimit(1000);
    provider.answer = () => undefined;
    const request = httpRequest(`${server.url}${callPath("openai/chat/completions")}`, {
      method: "POST",
      headers: { ...JSON_TYPE, "gw-aig-hedge-after": "1" },
      agent: false,
    });
    request.on("error", () => undefined);
    request.end(JSON.stringify({ model: "dear", max_tokens: 6 }));
    await expect.poll(() => provider.requests.length).toBe(2);
    const { reserved } = await readBudget();
    request.destroy();
    await expect.poll(async () => (await readBudget()).reserved).toBe(0);
    expect(await readUsed()).toBe(reserved);
  });

  it.each([
    ["of the request", { "gw-aig-request-timeout": "300" }, {}],
    ["of a step", {}, { config: { requestTimeout: 300 } }],
  ])("each reserve, if the caller's time limit %s cuts the one before", async (_, headers, fields) => {
    await setLimit(50);
    provider.answer = () => undefined;
    const step = {
      provider: "openai",
      endpoint: "chat/completions",
      query: { model: "dear", max_tokens: 6 },
    };
    const { status } = await call("/v1/default/default", [{ ...step, ...fields }], {
      ...headers,
      "gw-aig-max-attempts": "5",
      "gw-aig-retry-delay": "1",
    });
    expect(status).toBeGreaterThanOrEqual(400);
    const used = await readUsed();
    expect(used).toBeGreaterThan(0);
    expect(used).toBeLessThanOrEqual(50);
    expect(used % provider.requests.length).toBe(0);
  });
});

describe("a call that its budget refuses", () => {
  it("does not use up the rate of a stored key", async () => {
    const token = await makeToken({});
    const { body } = await server.api("POST", `${GATEWAY}/provider_configs`, {
      provider_slug: "openai",
      alias: "",
      secret: "sk-of-the-operator",
      rate_limit: 1,
      rate_limit_period: 60,
    });
    await setLimit(1, { provider: { mode: "filter", values: ["openai"] } });
    const step = (slug: string) => ({
      provider: slug,
      endpoint: "chat/completions",
      query: { model: "dear", max_tokens: 6 },
    });
    expect((await call("/v1/default/default", [step("openai"), step("groq")], token)).status).toBe(200);
    await setGateway(server, { spend_limits: null });
    expect((await chat(token)).status).toBe(200);
    const { id } = (body as { result: { id: string } }).result;
    await server.api("DELETE", `${GATEWAY}/provider_configs/${id}`);
  });
});

describe("usage", () => {
  it("of a path that is not known is no reason for a free call", async () => {
    await setLimit(100);
    provider.answer = (_, response) => sendJson(response, 200, { result: { response: "four".repeat(20) } });
    await call(callPath("workers-ai/run/@cf/dear"), { prompt: "Hi", max_tokens: 30 });
    expect(await readUsed()).toBeGreaterThanOrEqual(20);
    expect((await readLogs(server))[0]).toMatchObject({ usage: "estimated" });
  });

  it("reaches a client that asked for it, however large its body", async () => {
    const usage = `data: ${JSON.stringify({ choices: [], usage: USAGE })}\n\n`;
    provider.answer = (_, response) => sendEvents(response, [usage, "data: [DONE]\n\n"]);
    const fields = { stream: true, messages: [{ role: "user", content: "x".repeat(300_000) }] };
    const asked = await chat({}, { ...fields, stream_options: { include_usage: true } });
    expect(asked.body).toContain("prompt_tokens");
    expect((await chat({}, fields)).body).not.toContain("prompt_tokens");
  });

  it("of several answers is reserved, however large the body", async () => {
    await setLimit(400_000);
    const { status } = await call(callPath("google-ai-studio/v1beta/models/dear:generateContent"), {
      contents: [{ parts: [{ text: "x".repeat(300_000) }] }],
      generationConfig: { maxOutputTokens: 200_000, candidateCount: 2 },
    });
    expect([status, provider.requests.length]).toEqual([429, 0]);
  });
});

describe("calls without an output limit", () => {
  it("run beside each other only while the budget covers what each may cost", async () => {
    await setLimit(200_000);
    const writes: (() => void)[] = [];
    const large = { prompt_tokens: 10, completion_tokens: 120_000 };
    provider.answer = (_, response) => {
      writes.push(() => sendJson(response, 200, { model: "dear", choices: [], usage: large }));
    };
    const unlimited = { max_tokens: undefined };
    const calls = [chat({}, unlimited), chat({}, unlimited), chat({}, unlimited), chat({}, unlimited)];
    let refusals = 0;
    for (const one of calls) void one.then(({ status }) => (refusals += status === 429 ? 1 : 0));
    // All have arrived: a call that arrives after the answer would find a budget that nothing reserves.
    await expect.poll(() => refusals).toBe(3);
    await expect.poll(() => writes.length).toBe(1);
    for (const write of writes) write();
    expect((await Promise.all(calls)).map(({ status }) => status).toSorted((a, b) => a - b)).toEqual([
      200, 429, 429, 429,
    ]);
    expect(await readUsed()).toBeLessThanOrEqual(200_000 + 120_010);
  });
});

describe("doors", () => {
  it("count tokens for a token that may send the message, and for no other", async () => {
    provider.answer = (_, response) => sendJson(response, 200, { input_tokens: 3 });
    const limited = await makeToken({ models: ["anthropic/good"], routes: ["messages"] });
    const count = (name: string) =>
      call(
        callPath("compat/messages/count_tokens"),
        { model: `anthropic/${name}`, messages: [{ role: "user", content: "Hi" }] },
        { ...limited, "x-api-key": "k" },
      );
    expect((await count("good")).status).toBe(200);
    expect(codeOf(await count("bad"))).toBe(2043);
    expect(provider.requests.length).toBe(1);
  });

  it("give no response of one form to a caller of another one", async () => {
    await setGateway(server, { cache_ttl: 60 });
    const headers = { authorization: "Bearer k" };
    const messages = [{ role: "user", content: "Hi" }];
    const run = await call(
      "/accounts/default/ai/run",
      { model: "openai/gpt-x", input: { messages } },
      headers,
    );
    expect(JSON.parse(run.body)).toMatchObject({ success: true });
    const plain = await call(callPath("compat/chat/completions"), { messages, model: "gpt-x" }, headers);
    expect(JSON.parse(plain.body)).not.toHaveProperty("success");
  });
});
