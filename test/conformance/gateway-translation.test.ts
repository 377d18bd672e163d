/** Calls whose provider speaks another dialect than the client: what is refused, dropped, logged, cached, and how streams and errors end. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { gemini, GEMINI_KEY } from "../peers/gemini.ts";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs, send, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let peers: { openai: ProviderPeer; anthropic: ProviderPeer; gemini: ProviderPeer };
let server: TestServer;

beforeAll(async () => {
  const [one, two, three] = await Promise.all([
    startProvider(openAi),
    startProvider(anthropic),
    startProvider(gemini),
  ]);
  peers = { openai: one, anthropic: two, gemini: three };
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: one.url },
        groq: { baseUrl: `${one.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: two.url },
        "google-ai-studio": { baseUrl: three.url },
      },
    },
    environment: {
      OPENAI_API_KEY: OPENAI_KEY,
      GROQ_API_KEY: OPENAI_KEY,
      ANTHROPIC_API_KEY: ANTHROPIC_KEY,
      GOOGLE_AI_STUDIO_API_KEY: GEMINI_KEY,
    },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
  for (const slug of ["openai", "groq", "anthropic", "google-ai-studio"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: `${slug.toUpperCase().replaceAll("-", "_")}_API_KEY`,
    });
  }
});

beforeEach(() => {
  for (const peer of Object.values(peers)) peer.requests.length = 0;
  peers.openai.answer = openAi;
  peers.anthropic.answer = anthropic;
});

afterAll(async () => {
  await server.stop();
  for (const peer of Object.values(peers)) await peer.close();
});

const MESSAGES = [{ role: "user", content: "Hello" }];
const CLAUDE = "anthropic/claude-opus-5";

function call(path: string, body: object, headers: Record<string, string> = {}) {
  return send(server, "POST", path, {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", ...headers },
  });
}

const chat = (body: object, headers?: Record<string, string>) => call("/v1/chat/completions", body, headers);

describe("the request", () => {
  it("has the provider's form, headers and key", async () => {
    const answer = await chat(
      { model: CLAUDE, messages: [{ role: "system", content: "Be kind" }, ...MESSAGES], max_tokens: 50 },
      { "openai-organization": "org", "x-stainless-lang": "js", "x-team": "red" },
    );
    expect(answer.status).toBe(200);
    const [request] = peers.anthropic.requests;
    expect(request?.url).toBe("/v1/messages");
    expect(JSON.parse(request?.body ?? "")).toMatchObject({
      model: "claude-opus-5",
      max_tokens: 50,
      system: "Be kind",
      messages: [{ role: "user" }],
    });
    expect(request?.headers).toMatchObject({
      "x-api-key": ANTHROPIC_KEY,
      "anthropic-version": "2023-06-01",
      "content-type": "application/json",
      "x-team": "red",
    });
    for (const name of ["authorization", "openai-organization", "x-stainless-lang"]) {
      expect(request?.headers[name]).toBeUndefined();
    }
  });

  it("has the model in the path at Gemini, and a stream another method", async () => {
    await chat({ model: "google/gemini-2.5-flash", messages: MESSAGES });
    await chat({ model: "google/gemini-2.5-flash", messages: MESSAGES, stream: true });
    expect(peers.gemini.requests.map(({ url }) => url)).toEqual([
      "/v1beta/models/gemini-2.5-flash:generateContent",
      "/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
    ]);
    expect(peers.gemini.requests[0]?.headers["x-goog-api-key"]).toBe(GEMINI_KEY);
  });

  it("with a search of the web goes to the API of the provider that has one, and is billed with it", async () => {
    peers.openai.answer = (_, response) =>
      sendJson(response, 200, {
        id: "resp_1",
        model: "gpt-5",
        status: "completed",
        output: [
          {
            id: "ws_1",
            type: "web_search_call",
            status: "completed",
            action: { type: "search", query: "weather", sources: [{ type: "url", url: "https://a.test/" }] },
          },
          { type: "message", role: "assistant", content: [{ type: "output_text", text: "It rains." }] },
        ],
        usage: { input_tokens: 1000, output_tokens: 100 },
      });
    const answer = await call("/v1/messages", {
      model: "openai/gpt-5",
      max_tokens: 500,
      messages: MESSAGES,
      tools: [{ type: "web_search_20250305", name: "web_search", max_uses: 2 }],
    });
    expect(peers.openai.requests[0]?.url).toBe("/v1/responses");
    expect(JSON.parse(peers.openai.requests[0]?.body ?? "")).toMatchObject({
      tools: [{ type: "web_search" }],
      max_tool_calls: 2,
    });
    const { content } = JSON.parse(answer.body) as { content: { type: string }[] };
    expect(content.map(({ type }) => type)).toEqual(["server_tool_use", "web_search_tool_result", "text"]);
    const [row] = await readLogs(server);
    // A search is a cent; the tokens are a fifth of one.
    expect(row?.["cost"]).toBeCloseTo(0.01 + 1000 * 1.25e-6 + 100 * 10e-6, 9);
  });

  it("has the caller's own key in the provider's header, when the caller names the provider", async () => {
    await chat({ model: CLAUDE, messages: MESSAGES }, { authorization: "Bearer sk-own" });
    expect(peers.anthropic.requests[0]?.headers["x-api-key"]).toBe("sk-own");
    expect(peers.anthropic.requests[0]?.headers.authorization).toBeUndefined();
  });

  it("leaves Anthropic's query and headers at Anthropic", async () => {
    await call(
      "/v1/messages?beta=true",
      { model: "groq/llama", max_tokens: 9, messages: MESSAGES },
      { "anthropic-version": "2023-06-01", "anthropic-beta": "x" },
    );
    expect(peers.openai.requests[0]?.url).toBe("/v1/chat/completions");
    expect(Object.keys(peers.openai.requests[0]?.headers ?? {}).join()).not.toContain("anthropic");
  });
});

describe("what the provider cannot express", () => {
  const body = { model: CLAUDE, messages: MESSAGES, n: 2, logprobs: true };

  it("is refused by name, and nothing is sent", async () => {
    const answer = await chat(body);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body).error).toMatchObject({
      code: "2002",
      param: expect.stringMatching(/^(n|logprobs)$/),
    });
    expect(peers.anthropic.requests).toEqual([]);
    expect(JSON.parse((await call("/v1/default/default/compat/chat/completions", body)).body)).toMatchObject({
      internalCode: 2002,
    });
  });

  it("is left out and listed when the caller allows it", async () => {
    const answer = await chat(body, { "gw-aig-drop-params": "true" });
    expect(answer.status).toBe(200);
    expect(answer.headers["gw-aig-dropped"]?.toString().split(",").toSorted()).toEqual(["logprobs", "n"]);
    const [row] = await readLogs(server);
    expect(row).toMatchObject({
      client_dialect: "chat",
      provider_dialect: "messages",
      provider: "anthropic",
    });
    expect(String(row?.["dropped"]).split(",").toSorted()).toEqual(["logprobs", "n"]);
    expect((await chat(body, { "gw-aig-drop-params": "yes" })).status).toBe(400);
  });

  it("is refused with the code that the client looks for", async () => {
    const answer = await call("/v1/responses", { model: CLAUDE, input: "x", previous_response_id: "resp_1" });
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, "previous_response_not_found"]);
  });

  it.each([
    ["/v1/embeddings", { model: CLAUDE, input: "x" }],
    ["/v1/chat/completions", { model: "elevenlabs/v", messages: MESSAGES }],
    ["/v1/chat/completions", { model: "azure-openai/d", messages: MESSAGES }],
    ["/v1/chat/completions", { model: "aws-bedrock/m", messages: MESSAGES }],
  ])("is an API that the provider lacks or the configuration does not place: %s %o", async (path, given) => {
    const answer = await call(path, given);
    expect([answer.status, JSON.parse(answer.body).error.code]).toEqual([400, "2002"]);
  });
});

describe("the row", () => {
  it("has what the client sent and got, and the provider's usage", async () => {
    const sent = { model: CLAUDE, messages: MESSAGES, stream: true };
    const answer = await chat(sent);
    const [row] = await readLogs(server);
    expect(row).toMatchObject({
      provider: "anthropic",
      model: "claude-opus-5",
      path: "messages",
      client_dialect: "chat",
      provider_dialect: "messages",
      tokens_in: 25,
      tokens_out: 6,
      tokens_in_cached: 2,
      success: true,
      response_content_type: "text/event-stream; charset=utf-8",
    });
    const base = `/accounts/default/ai-gateway/gateways/default/logs/${String(row?.["id"])}`;
    const stored = async (name: string) => (await server.api("GET", `${base}/${name}`)).body;
    expect(await stored("request")).toEqual(sent);
    expect(answer.body).toContain("data: [DONE]");
    expect(answer.body).not.toContain('"usage":{');
    expect(JSON.stringify(await stored("response"))).toContain("[DONE]");
  });

  it("shows an error of the provider", async () => {
    peers.anthropic.answer = (_, response) =>
      sendJson(response, 529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } });
    const answer = await chat({ model: CLAUDE, messages: MESSAGES });
    expect([answer.status, answer.headers["gw-aig-error-origin"]]).toEqual([529, "provider"]);
    expect(JSON.parse(answer.body).error.message).toBe("Overloaded");
    expect((await readLogs(server))[0]).toMatchObject({ status_code: 529, success: false, cost: 0 });
  });
});

describe("cache and retries", () => {
  it("caches a translated response for its dialect only", async () => {
    await setGateway(server, { cache_ttl: 3600 });
    try {
      const body = { model: CLAUDE, max_tokens: 9, messages: [{ role: "user", content: "cache me" }] };
      const first = await chat(body);
      const second = await chat(body);
      expect([first, second].map(({ headers }) => headers["gw-aig-cache-status"])).toEqual(["MISS", "HIT"]);
      expect(second.body).toBe(first.body);
      expect(second.headers["gw-aig-model"]).toBe("claude-opus-5");
      const other = await call("/v1/messages", body);
      expect(other.headers["gw-aig-cache-status"]).toBe("MISS");
      expect(JSON.parse(other.body).type).toBe("message");
    } finally {
      await setGateway(server, { cache_ttl: 0 });
    }
  });

  it("tries again after an answer that cannot be translated", async () => {
    let count = 0;
    peers.anthropic.answer = (request, response, raw) =>
      count++ === 0 ? sendJson(response, 200, { error: "in the body" }) : anthropic(request, response, raw);
    const answer = await chat({ model: CLAUDE, messages: MESSAGES }, { "gw-aig-max-attempts": "2" });
    expect([answer.status, count]).toEqual([200, 2]);
    count = 0;
    const last = await chat({ model: CLAUDE, messages: MESSAGES });
    expect([last.status, JSON.parse(last.body).error.code]).toEqual([502, "2005"]);
  });
});

describe("a stream that the provider cuts", () => {
  const cut = (peer: ProviderPeer, text: string) => {
    peer.answer = (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(text, () => setImmediate(() => response.destroy()));
    };
  };

  async function read(path: string, body: object): Promise<{ text: string; isCut: boolean }> {
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    let text = "";
    try {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
      return { text, isCut: false };
    } catch {
      return { text, isCut: true };
    }
  }

  it("ends with an error of the client's dialect and a cut connection", async () => {
    const start = {
      type: "message_start",
      message: {
        id: "m",
        type: "message",
        role: "assistant",
        model: "c",
        content: [],
        usage: { input_tokens: 1, output_tokens: 1 },
      },
    };
    cut(peers.anthropic, `event: message_start\ndata: ${JSON.stringify(start)}\n\n`);
    const asChat = await read("/v1/chat/completions", { model: CLAUDE, messages: MESSAGES, stream: true });
    expect(asChat.isCut).toBe(true);
    expect(asChat.text).toMatch(/data: \{"error":[^\n]*\}\n\n$/);
    expect(asChat.text).not.toContain("[DONE]");

    const chunk = {
      id: "c",
      object: "chat.completion.chunk",
      created: 1,
      model: "m",
      choices: [{ index: 0, delta: { role: "assistant", content: "He" }, finish_reason: null }],
    };
    cut(peers.openai, `data: ${JSON.stringify(chunk)}\n\n`);
    const asMessages = await read("/v1/messages", {
      model: "groq/x",
      max_tokens: 5,
      messages: MESSAGES,
      stream: true,
    });
    expect(asMessages.isCut).toBe(true);
    expect(asMessages.text).toMatch(/event: error\ndata: \{"type":"error",[^\n]*\}\n\n$/);
    expect(asMessages.text).not.toContain("message_stop");
    const asResponses = await read("/v1/responses", { model: "groq/x", input: "x", stream: true });
    expect(asResponses.isCut).toBe(true);
    expect(asResponses.text).not.toContain("response.completed");
    expect(asResponses.text).toMatch(/error/);
    expect((await readLogs(server))[0]).toMatchObject({ success: false });
  });
});

describe("the universal endpoint", () => {
  it("takes steps of different dialects, and answers in the dialect of the step", async () => {
    peers.openai.answer = (_, response) => sendJson(response, 500, { error: { message: "down" } });
    const query = { messages: MESSAGES, max_tokens: 9 };
    const steps = [
      { provider: "openai", endpoint: "chat/completions", query: { ...query, model: "gpt-4o" } },
      { provider: "anthropic", endpoint: "chat/completions", query: { ...query, model: "claude-opus-5" } },
    ];
    const answer = await call("/v1/default/default", steps);
    expect([answer.status, answer.headers["gw-aig-step"]]).toEqual([200, "1"]);
    expect(JSON.parse(answer.body)).toMatchObject({ object: "chat.completion" });
    expect(peers.anthropic.requests[0]?.url).toBe("/v1/messages");
  });

  it("takes steps whose model names the provider", async () => {
    const step = {
      provider: "compat",
      endpoint: "v1/chat/completions",
      query: { model: "google/gemini-x", messages: MESSAGES },
    };
    const answer = await call("/v1/default/default", [step]);
    expect([answer.status, answer.headers["gw-aig-provider"]]).toEqual([200, "google-ai-studio"]);
    const wrong = await call("/v1/default/default", [{ ...step, endpoint: "images/generations" }]);
    expect(wrong.status).toBe(400);
  });
});

describe("ai/run", () => {
  it("takes the input of the model's provider, and answers in the envelope", async () => {
    const answer = await call("/accounts/default/ai/run", {
      model: CLAUDE,
      input: { max_tokens: 5, messages: MESSAGES },
    });
    expect(JSON.parse(answer.body)).toMatchObject({
      success: true,
      errors: [],
      result: { type: "message", model: "claude-opus-5" },
    });
    const chatted = await call("/client/v4/accounts/default/ai/run", {
      model: "openai/gpt",
      input: { messages: MESSAGES },
    });
    expect(JSON.parse(chatted.body)).toMatchObject({ success: true, result: { object: "chat.completion" } });
    expect((await readLogs(server))[0]).toMatchObject({ tokens_in: 12, tokens_out: 7 });
    const streamed = await call("/accounts/default/ai/run", {
      model: "openai/gpt",
      input: { messages: MESSAGES, stream: true },
    });
    expect(streamed.body).toMatch(/^data: \{"id"/);
  });

  it("answers a credential that the provider refuses with the code of the hosted original", async () => {
    const body = { model: "openai/gpt", input: { messages: MESSAGES } };
    for (const [status, code] of [
      [401, 2009],
      [403, 2005],
    ] as const) {
      peers.openai.answer = (_, response) => sendJson(response, status, { error: { message: "no" } });
      // A key of the caller: a stored one would not be used again.
      const refused = await call("/accounts/default/ai/run", body, { authorization: "Bearer sk-old" });
      expect(refused.status).toBe(status);
      expect(JSON.parse(refused.body)).toMatchObject({ success: false, errors: [{ code, message: "no" }] });
    }
  });

  it("refuses bad input in the envelope", async () => {
    for (const body of [
      {},
      { model: CLAUDE },
      { model: CLAUDE, input: [] },
      { model: "nowhere/x", input: {} },
    ]) {
      const answer = await call("/accounts/default/ai/run", body);
      expect([answer.status, JSON.parse(answer.body).success]).toEqual([400, false]);
      expect(answer.headers["gw-aig-error-origin"]).toBe("gateway");
    }
  });
});

describe("count_tokens", () => {
  const body = { model: "groq/llama", messages: [{ role: "user", content: "word ".repeat(100) }] };

  it("is an estimate for models of others", async () => {
    const answer = await call("/v1/messages/count_tokens?beta=true", body);
    const { input_tokens: count } = JSON.parse(answer.body) as { input_tokens: number };
    expect(answer.status).toBe(200);
    expect(count).toBeGreaterThan(60);
    expect(count).toBeLessThan(300);
    expect(peers.openai.requests).toEqual([]);
  });

  it("is Anthropic's own for its models", async () => {
    peers.anthropic.answer = (_, response) => sendJson(response, 200, { input_tokens: 42 });
    const answer = await call("/v1/messages/count_tokens", { ...body, model: CLAUDE });
    expect(answer.body).toBe('{"input_tokens":42}');
    expect(peers.anthropic.requests[0]?.url).toBe("/v1/messages/count_tokens");
    expect((await readLogs(server))[0]).toMatchObject({ model: "claude-opus-5", tokens_in: 0, cost: 0 });
  });
});
