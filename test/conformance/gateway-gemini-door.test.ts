/** The door for clients of Gemini's API: Google's SDK on models of all providers. */
import { GoogleGenAI } from "@google/genai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { gemini, GEMINI_KEY } from "../peers/gemini.ts";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let peers: { openai: ProviderPeer; anthropic: ProviderPeer; gemini: ProviderPeer };
let server: TestServer;
let token: string;

beforeAll(async () => {
  const [one, two, three] = await Promise.all([
    startProvider(openAi),
    startProvider(anthropic),
    startProvider(gemini),
  ]);
  peers = { openai: one, anthropic: two, gemini: three };
  server = await startTestServer({
    file: {
      gateway: { models: { "gemini-alias": "openai/gpt-4o-mini" } },
      providers: {
        openai: { baseUrl: one.url },
        groq: { baseUrl: `${one.url}/v1` },
        anthropic: { baseUrl: two.url },
        "google-ai-studio": { baseUrl: three.url },
      },
    },
    environment: {
      OPENAI_API_KEY: OPENAI_KEY,
      ANTHROPIC_API_KEY: ANTHROPIC_KEY,
      GOOGLE_AI_STUDIO_API_KEY: GEMINI_KEY,
    },
  });
  for (const [slug, secret] of [
    ["openai", "OPENAI_API_KEY"],
    ["anthropic", "ANTHROPIC_API_KEY"],
    ["google-ai-studio", "GOOGLE_AI_STUDIO_API_KEY"],
  ]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: secret,
    });
  }
  await setGateway(server, { authentication: true });
  token = await server.token(["gateway.run"]);
});

beforeEach(() => {
  for (const peer of Object.values(peers)) peer.requests.length = 0;
  peers.gemini.answer = gemini;
});

afterAll(async () => {
  await server.stop();
  for (const peer of Object.values(peers)) await peer.close();
});

function client(apiVersion?: string): GoogleGenAI {
  const options = apiVersion === undefined ? {} : { apiVersion };
  return new GoogleGenAI({ apiKey: token, httpOptions: { baseUrl: server.url, ...options } });
}

function post(path: string, body: object, headers: Record<string, string> = {}) {
  return send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", "x-goog-api-key": token, ...headers },
  });
}

const CONTENTS = [{ role: "user", parts: [{ text: "Hello" }] }];

describe("Google's SDK", () => {
  it.each(["gemini-2.5-flash", "openai/gpt-4o-mini", "anthropic/claude-opus-5", "gemini-alias"])(
    "gets answers of %s, whole and streamed",
    async (model) => {
      const answer = await client().models.generateContent({ model, contents: "Hello" });
      expect(answer.text).toMatch(/^Hello/);
      expect(answer.usageMetadata?.promptTokenCount).toBeGreaterThan(0);
      let text = "";
      let tokens = 0;
      for await (const part of await client().models.generateContentStream({ model, contents: "Hello" })) {
        text += part.text ?? "";
        tokens = part.usageMetadata?.candidatesTokenCount ?? tokens;
      }
      expect(text).toMatch(/^Hello/);
      expect(tokens).toBeGreaterThan(0);
    },
  );

  it("gets answers below v1, too", async () => {
    const answer = await client("v1").models.generateContent({
      model: "openai/gpt-4o-mini",
      contents: "Hello",
    });
    expect(answer.text).toBe("Hello there");
  });

  it("calls tools of the program on a model of another dialect", async () => {
    peers.openai.answer = (_, response) =>
      sendJson(response, 200, {
        id: "c",
        model: "gpt-4o-mini",
        choices: [
          {
            index: 0,
            finish_reason: "tool_calls",
            message: {
              role: "assistant",
              content: null,
              tool_calls: [
                {
                  id: "call_1",
                  type: "function",
                  function: { name: "weather", arguments: '{"city":"Bonn"}' },
                },
              ],
            },
          },
        ],
        usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
      });
    try {
      const answer = await client().models.generateContent({
        model: "openai/gpt-4o-mini",
        contents: "Weather?",
        config: {
          tools: [{ functionDeclarations: [{ name: "weather", parametersJsonSchema: { type: "object" } }] }],
        },
      });
      expect(answer.functionCalls).toMatchObject([{ name: "weather", args: { city: "Bonn" } }]);
      expect(JSON.parse(peers.openai.requests[0]?.body ?? "")).toMatchObject({
        model: "gpt-4o-mini",
        tools: [{ type: "function", function: { name: "weather" } }],
      });
    } finally {
      peers.openai.answer = openAi;
    }
  });

  it("gets the error of another provider as one of Google's", async () => {
    peers.openai.answer = (_, response) =>
      sendJson(response, 429, { error: { message: "slow down", type: "rate_limit" } });
    try {
      const failed = client().models.generateContent({ model: "openai/gpt-4o-mini", contents: "Hello" });
      await expect(failed).rejects.toMatchObject({ status: 429 });
      await expect(failed).rejects.toThrow("RESOURCE_EXHAUSTED");
    } finally {
      peers.openai.answer = openAi;
    }
  });

  it("counts tokens, by an estimate for models of others", async () => {
    peers.gemini.answer = (_, response) => sendJson(response, 200, { totalTokens: 31 });
    const own = await client().models.countTokens({ model: "gemini-2.5-flash", contents: "Hello" });
    expect(own.totalTokens).toBe(31);
    expect(peers.gemini.requests[0]?.url).toBe("/v1beta/models/gemini-2.5-flash:countTokens");
    const other = await client().models.countTokens({ model: "anthropic/claude-opus-5", contents: "Hello" });
    expect(other.totalTokens).toBeGreaterThan(0);
  });

  it("gets embeddings of other providers, and of Gemini with the name that the model has there", async () => {
    const answer = await client().models.embedContent({
      model: "openai/text-embedding-3-small",
      contents: ["Hello"],
    });
    expect(answer.embeddings?.[0]?.values).toEqual([0.25, -0.5]);
    peers.gemini.answer = (_, response) => sendJson(response, 200, { embeddings: [{ values: [1] }] });
    await client().models.embedContent({
      model: "google-ai-studio/gemini-embedding-001",
      contents: ["a", "b"],
    });
    expect(peers.gemini.requests[0]?.url).toBe("/v1beta/models/gemini-embedding-001:batchEmbedContents");
    expect(JSON.parse(peers.gemini.requests[0]?.body ?? "")).toMatchObject({
      requests: [{ model: "models/gemini-embedding-001" }, { model: "models/gemini-embedding-001" }],
    });
  });

  it("lists the models that the token may call, page by page", async () => {
    const names: (string | undefined)[] = [];
    for await (const model of await client().models.list({ config: { pageSize: 7 } })) names.push(model.name);
    expect(names).toContain("models/gemini-2.5-flash");
    expect(names).toContain("models/gemini-alias");
    expect(new Set(names).size).toBe(names.length);
    const one = await client().models.get({ model: "gemini-alias" });
    expect(one.supportedActions).toContain("generateContent");
  });
});

describe("a request to Gemini itself", () => {
  it("passes byte for byte, with the query of the client", async () => {
    const body = '{ "contents": [{"parts":[{"text":"Grüße"}]}], "unknown": 1.0 }';
    const answer = await send(
      server,
      "POST",
      "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
      {
        body,
        headers: { "content-type": "application/json", "x-goog-api-key": token },
      },
    );
    expect(answer.status).toBe(200);
    expect(peers.gemini.requests[0]).toMatchObject({
      url: "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
      body,
      headers: { "x-goog-api-key": GEMINI_KEY },
    });
    const [row] = await readLogs(server);
    expect(row).toMatchObject({ model: "gemini-2.5-flash", client_dialect: "gemini", tokens_in: 9 });
  });

  it("takes the caller's own key from the query, and gives it to Google only", async () => {
    await setGateway(server, { authentication: false });
    try {
      const call = (model: string) =>
        send(server, "POST", `/v1beta/models/${model}:generateContent?key=${GEMINI_KEY}`, {
          body: JSON.stringify({ contents: CONTENTS }),
          headers: { "content-type": "application/json" },
        });
      expect((await call("gemini-2.5-flash")).status).toBe(200);
      expect(peers.gemini.requests[0]?.url).not.toContain("key=");
      await call("gemini-alias");
      expect(JSON.stringify(peers.openai.requests)).not.toContain(GEMINI_KEY);
    } finally {
      await setGateway(server, { authentication: true });
    }
  });
});

it("keeps answers of different models and forms apart in the cache", async () => {
  const headers = { "gw-aig-cache-ttl": "60" };
  const statuses = [];
  for (const path of [
    "openai/gpt-4o-mini:generateContent",
    "openai/gpt-4o:generateContent",
    "openai/gpt-4o:streamGenerateContent?alt=sse",
    "openai/gpt-4o:generateContent",
  ]) {
    const answer = await post(`/v1beta/models/${path}`, { contents: CONTENTS }, headers);
    statuses.push(answer.headers["gw-aig-cache-status"]);
  }
  expect(statuses).toEqual(["MISS", "MISS", "MISS", "HIT"]);
});

describe("what the gateway refuses", () => {
  it("has the form that Google's clients read", async () => {
    for (const [path, status, name] of [
      ["nowhere/x:generateContent", 400, "INVALID_ARGUMENT"],
      ["openai/gpt-4o:streamGenerateContent", 400, "INVALID_ARGUMENT"],
    ] as const) {
      const answer = await post(`/v1beta/models/${path}`, { contents: CONTENTS });
      expect([answer.status, JSON.parse(answer.body).error]).toMatchObject([
        status,
        { code: status, status: name },
      ]);
    }
    const stranger = await post(
      "/v1beta/models/gemini-2.5-flash:generateContent",
      {},
      { "x-goog-api-key": "x" },
    );
    expect([stranger.status, JSON.parse(stranger.body).error.status]).toEqual([401, "UNAUTHENTICATED"]);
    const unknown = await post("/v1beta/cachedContents", {});
    expect([unknown.status, JSON.parse(unknown.body).error.status]).toEqual([404, "NOT_FOUND"]);
  });

  it("is in the gateway's format below compat", async () => {
    const base = "/v1/default/default/compat/v1beta/models";
    expect((await post(`${base}/openai/gpt-4o:generateContent`, { contents: CONTENTS })).status).toBe(200);
    const answer = await post(`${base}/nowhere/x:generateContent`, { contents: CONTENTS });
    expect(JSON.parse(answer.body)).toMatchObject({ name: "AiGatewayError", internalCode: 2008 });
  });
});
