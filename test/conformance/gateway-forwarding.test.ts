/** Contract sections 1.1, 4.1 and 9.1: where calls go, and that they arrive and come back unchanged. */
import { request as httpRequest, type IncomingMessage } from "node:http";
import { once } from "node:events";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BUILT_IN_PROVIDERS } from "../../packages/signalbox/src/gateway/providers/built-in.ts";
import { createProvider } from "../../packages/signalbox/src/gateway/providers/provider.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { callPath, CHAT, post, send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
beforeAll(async () => {
  provider = await startProvider((_, response) => sendJson(response, 200, { ok: true }));
  const at = { baseUrl: provider.url };
  server = await startTestServer({
    file: {
      providers: {
        openai: at,
        groq: at,
        deepseek: at,
        anthropic: at,
        "google-ai-studio": at,
        "azure-openai": at,
        cohere: at,
        ollama: at,
        mine: { baseUrl: `${provider.url}/base/v1` },
      },
      gateway: { allowPrivateCustomProviders: true },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});
beforeEach(() => {
  provider.requests.length = 0;
});

describe("addresses of the built-in providers", () => {
  const cases: [slug: string, path: string, url: string][] = [
    ["openai", "chat/completions", "https://api.openai.com/v1/chat/completions"],
    ["openai", "v1/responses", "https://api.openai.com/v1/responses"],
    ["anthropic", "v1/messages", "https://api.anthropic.com/v1/messages"],
    ["anthropic", "chat/completions", "https://api.anthropic.com/v1/chat/completions"],
    [
      "google-ai-studio",
      "v1beta/models/gemini-2.5-flash:generateContent",
      "https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent",
    ],
    [
      "google-ai-studio",
      "chat/completions",
      "https://generativelanguage.googleapis.com/v1beta/openai/chat/completions",
    ],
    [
      "google-vertex-ai",
      "v1/projects/p/locations/europe-west4/endpoints/openapi/chat/completions",
      "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4/endpoints/openapi/chat/completions",
    ],
    [
      "google-vertex-ai",
      "v1/projects/p/locations/global/publishers/google/models/g:generateContent",
      "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/google/models/g:generateContent",
    ],
    [
      "azure-openai",
      "my-resource/my-deployment/chat/completions",
      "https://my-resource.openai.azure.com/openai/deployments/my-deployment/chat/completions",
    ],
    [
      "azure-openai",
      "my-resource/openai/v1/chat/completions",
      "https://my-resource.openai.azure.com/openai/v1/chat/completions",
    ],
    [
      "aws-bedrock",
      "bedrock-runtime/us-east-1/model/anthropic.claude/invoke",
      "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.claude/invoke",
    ],
    [
      "aws-bedrock",
      "bedrock-runtime/us-east-1/chat/completions",
      "https://bedrock-runtime.us-east-1.amazonaws.com/openai/v1/chat/completions",
    ],
    [
      "workers-ai",
      "@cf/meta/llama-3.1-8b-instruct",
      "https://api.cloudflare.com/client/v4/accounts/acc/ai/run/@cf/meta/llama-3.1-8b-instruct",
    ],
    [
      "workers-ai",
      "v1/chat/completions",
      "https://api.cloudflare.com/client/v4/accounts/acc/ai/v1/chat/completions",
    ],
    ["groq", "chat/completions", "https://api.groq.com/openai/v1/chat/completions"],
    ["grok", "v1/chat/completions", "https://api.x.ai/v1/chat/completions"],
    ["mistral", "chat/completions", "https://api.mistral.ai/v1/chat/completions"],
    ["deepseek", "v1/chat/completions", "https://api.deepseek.com/chat/completions"],
    ["perplexity-ai", "chat/completions", "https://api.perplexity.ai/chat/completions"],
    ["cohere", "chat/completions", "https://api.cohere.com/compatibility/v1/chat/completions"],
    ["cohere", "v2/chat", "https://api.cohere.com/v2/chat"],
    ["cerebras", "chat/completions", "https://api.cerebras.ai/v1/chat/completions"],
    ["openrouter", "chat/completions", "https://openrouter.ai/api/v1/chat/completions"],
    ["fireworks", "chat/completions", "https://api.fireworks.ai/inference/v1/chat/completions"],
    ["together", "chat/completions", "https://api.together.xyz/v1/chat/completions"],
    ["replicate", "predictions", "https://api.replicate.com/v1/predictions"],
    ["huggingface", "chat/completions", "https://router.huggingface.co/v1/chat/completions"],
    ["huggingface", "bert-base", "https://router.huggingface.co/hf-inference/models/bert-base"],
    ["ollama", "chat/completions", "http://127.0.0.1:11434/v1/chat/completions"],
    ["ollama", "api/chat", "http://127.0.0.1:11434/api/chat"],
    ["vllm", "v1/chat/completions", "http://127.0.0.1:8000/v1/chat/completions"],
  ];

  it.each(cases)("%s: %s", (slug, path, url) => {
    const definition = BUILT_IN_PROVIDERS.find((candidate) => candidate.slug === slug);
    if (definition === undefined) throw new Error(`no provider ${slug}`);
    const { origin, path: upstreamPath } = createProvider(definition).locate(path, "acc");
    expect(`${origin.isTls ? "https" : "http"}://${origin.hostHeader}${upstreamPath}`).toBe(url);
  });

  it("has a case for every built-in provider", () => {
    const tested = new Set(cases.map(([slug]) => slug));
    expect(BUILT_IN_PROVIDERS.map(({ slug }) => slug).filter((slug) => !tested.has(slug))).toEqual([]);
  });

  it.each([
    ["azure-openai", "evil.example%2f/x/y"],
    ["azure-openai", "resource.evil.example/x/y"],
    ["aws-bedrock", "bedrock-runtime/evil.example%23/x"],
    ["google-vertex-ai", "v1/projects/p/locations/evil.example%2f/x"],
    ["google-vertex-ai", "chat/completions"],
  ])("refuses a path of %s that would name another host: %s", async (slug, path) => {
    const answer = await post(server, `${slug}/${path}`);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2002 });
  });
});

describe("paths, methods, queries, headers and bodies", () => {
  it.each([
    ["openai/chat/completions", "/v1/chat/completions"],
    ["openai/v1/chat/completions", "/v1/chat/completions"],
    ["groq/v1/chat/completions", "/openai/v1/chat/completions"],
    ["deepseek/chat/completions", "/chat/completions"],
    ["anthropic/v1/messages", "/v1/messages"],
    ["google-ai-studio/chat/completions", "/v1beta/openai/chat/completions"],
    [
      "azure-openai/res/dep/chat/completions?api-version=1",
      "/openai/deployments/dep/chat/completions?api-version=1",
    ],
    ["ollama/api/chat", "/api/chat"],
    ["mine/chat/completions", "/base/v1/chat/completions"],
    ["mine/v1/chat/completions", "/base/v1/chat/completions"],
    ["openai/chat/completions?a=1&b=%20x", "/v1/chat/completions?a=1&b=%20x"],
    ["openai/files/a%2Fb", "/v1/files/a%2Fb"],
  ])("forwards %s to %s", async (path, url) => {
    expect((await post(server, path)).status).toBe(200);
    expect(provider.requests[0]?.url).toBe(url);
  });

  it.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS"])("forwards %s", async (method) => {
    const answer = await send(server, method, callPath("openai/files/1"));
    expect(answer.status).toBe(200);
    expect(provider.requests[0]).toMatchObject({ method, url: "/v1/files/1", body: "" });
  });

  it("forwards HEAD and gives the length without a body", async () => {
    const answer = await send(server, "HEAD", callPath("openai/models"));
    expect(answer).toMatchObject({ status: 200, body: "" });
    expect(answer.headers["content-length"]).toBe("11");
  });

  it("forwards a body it does not understand byte for byte", async () => {
    const body = Buffer.from(Array.from({ length: 512 }, (_, i) => i % 256));
    provider.answer = (_, response, raw) =>
      sendJson(response, 200, { length: raw.headers["content-length"] });
    const answer = await post(server, "openai/audio/transcriptions", {
      body,
      headers: { "content-type": "multipart/form-data; boundary=x" },
    });
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(JSON.parse(answer.body)).toEqual({ length: "512" });
    expect(provider.requests[0]?.headers["content-type"]).toBe("multipart/form-data; boundary=x");
  });

  it("gives the provider's status, headers and body back, less hop-by-hop", async () => {
    provider.answer = (_, response) => {
      response.writeHead(418, [
        ["content-type", "text/plain"],
        ["x-ratelimit-remaining", "7"],
        ["x-twice", "a=1"],
        ["x-twice", "b=2"],
        ["set-cookie", "of=the provider"],
        ["keep-alive", "timeout=99"],
        ["connection", "keep-alive, x-hop"],
        ["x-hop", "1"],
        ["x-request-id", "req_provider"],
      ] as unknown as string[]);
      response.end("short and stout");
    };
    const answer = await post(server, "openai/chat/completions");
    provider.answer = (_, response) => sendJson(response, 200, { ok: true });
    expect(answer).toMatchObject({ status: 418, body: "short and stout" });
    expect(answer.headers).toMatchObject({
      "content-type": "text/plain",
      "x-ratelimit-remaining": "7",
      "x-twice": "a=1, b=2",
      "x-request-id": "req_provider",
      "gw-aig-error-origin": "provider",
    });
    expect(answer.headers["set-cookie"]).toBeUndefined();
    expect(answer.headers["x-hop"]).toBeUndefined();
    expect(answer.headers["keep-alive"]).not.toBe("timeout=99");
  });

  it("asks for an unpacked response and drops hop-by-hop request headers", async () => {
    await post(server, "openai/chat/completions", {
      headers: {
        connection: "x-mine",
        "x-mine": "1",
        te: "trailers",
        "accept-encoding": "gzip, br",
        "x-yours": "2",
      },
    });
    const headers = provider.requests[0]?.headers ?? {};
    expect(headers).toMatchObject({
      "accept-encoding": "identity",
      "x-yours": "2",
      host: `127.0.0.1:${provider.port}`,
    });
    expect(headers["x-mine"]).toBeUndefined();
    expect(headers["te"]).toBeUndefined();
  });

  it("continues the caller's trace with itself as the parent", async () => {
    const trace = "0af7651916cd43dd8448eb211c80319c";
    await post(server, "openai/chat/completions", {
      headers: { traceparent: `00-${trace}-b7ad6b7169203331-01`, tracestate: "a=b" },
    });
    const sent = String(provider.requests[0]?.headers["traceparent"]);
    expect(sent).toMatch(new RegExp(`^00-${trace}-[0-9a-f]{16}-01$`));
    expect(sent).not.toContain("b7ad6b7169203331");
    expect(provider.requests[0]?.headers["tracestate"]).toBe("a=b");
  });

  it("marks a call with the id of its log row", async () => {
    const answer = await post(server, "openai/chat/completions");
    expect(answer.headers["gw-aig-log-id"]).toMatch(/^[0-9A-HJKMNP-TV-Z]{26}$/);
    const silent = await post(server, "openai/chat/completions", {
      headers: { "gw-aig-collect-log": "false" },
    });
    expect(silent.headers["gw-aig-log-id"]).toBeUndefined();
  });

  it("streams a request body that is larger than what it keeps", async () => {
    const size = 20 * 1024 * 1024;
    let received = 0;
    provider.answer = (_, response) => sendJson(response, 200, { received });
    const request = httpRequest(`${server.url}${callPath("openai/files")}`, {
      method: "POST",
      headers: { "content-type": "application/octet-stream" },
    });
    const piece = Buffer.alloc(64 * 1024, 1);
    for (let sent = 0; sent < size; sent += piece.length) {
      if (!request.write(piece)) await once(request, "drain");
    }
    request.end();
    const [response] = (await once(request, "response")) as [IncomingMessage];
    response.resume();
    expect(response.statusCode).toBe(200);
    received = provider.requests[0]?.body.length ?? 0;
    provider.answer = (_, answer) => sendJson(answer, 200, { ok: true });
    expect(received).toBe(size);
    expect(provider.requests[0]?.headers["transfer-encoding"]).toBe("chunked");
  });
});

describe("custom providers", () => {
  const path = "/accounts/default/ai-gateway/custom-providers";

  it("reaches an account's own provider below its base address, with its headers", async () => {
    const made = await server.api("POST", path, {
      name: "Mine",
      slug: "inhouse",
      base_url: `${provider.url}/api`,
      headers: JSON.stringify({ "x-team": "red" }),
    });
    expect(made.body.result).toMatchObject({
      slug: "inhouse",
      enable: true,
      headers: '{"x-team":"[secret]"}',
    });
    const answer = await post(server, "custom-inhouse/any/where?q=1", { body: "{}" });
    expect(answer.status).toBe(200);
    expect(provider.requests[0]).toMatchObject({ url: "/api/any/where?q=1" });
    expect(provider.requests[0]?.headers["x-team"]).toBe("red");
    const { id } = made.body.result as { id: string };
    await server.api("PATCH", `${path}/${id}`, { enable: false });
    expect((await post(server, "custom-inhouse/x")).status).toBe(400);
    await server.api("PATCH", `${path}/${id}`, { enable: true });
    expect((await post(server, "custom-inhouse/x")).status).toBe(200);
    await server.api("DELETE", `${path}/${id}`);
    expect(JSON.parse((await post(server, "custom-inhouse/x")).body)).toMatchObject({ internalCode: 2008 });
  });

  it("keeps one account's providers from another", async () => {
    await server.api("POST", path, { name: "P", slug: "private-one", base_url: provider.url });
    await server.api("POST", "/accounts", { id: "neighbour" });
    await server.api("POST", "/accounts/neighbour/ai-gateway/gateways", { id: "g" });
    const answer = await send(server, "POST", callPath("custom-private-one/x", "g", "neighbour"), {
      body: CHAT,
    });
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2008 });
  });

  it.each([
    ["base_url", { base_url: "ftp://example.com" }],
    ["base_url", { base_url: "https://user:pass@example.com" }],
    ["slug", { slug: "Bad Slug" }],
    ["headers", { headers: '{"a":"b\\r\\nevil: 1"}' }],
    ["headers", { headers: '{"content-length":"5"}' }],
    ["headers", { headers: "[]" }],
  ])("refuses an invalid %s", async (name, change) => {
    const { status, body } = await server.api("POST", path, {
      name: "x",
      slug: "x",
      base_url: "https://example.com",
      ...change,
    });
    expect(status).toBe(400);
    expect(body.errors[0].message).toContain(name);
  });

  it("takes only https and public addresses unless the operator allows others", async () => {
    const strict = await startTestServer();
    try {
      for (const base_url of [
        "http://example.com",
        "https://127.0.0.1",
        "https://localhost",
        "https://[::1]:1",
        "https://10.0.0.8",
      ]) {
        const { status } = await strict.api("POST", path, { name: "x", slug: "x", base_url });
        expect(status, base_url).toBe(400);
      }
      expect(
        (await strict.api("POST", path, { name: "x", slug: "x", base_url: "https://example.com" })).status,
      ).toBe(200);
    } finally {
      await strict.stop();
    }
  });
});

describe("the built-in provider echo", () => {
  it("answers a chat completion the same way each time, with usage", async () => {
    const [first, second] = [
      await post(server, "echo/chat/completions"),
      await post(server, "echo/v1/chat/completions"),
    ];
    expect(first.status).toBe(200);
    expect(second.body).toBe(first.body);
    expect(JSON.parse(first.body)).toMatchObject({
      object: "chat.completion",
      model: "gpt-4o-mini",
      choices: [{ message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }],
      usage: { prompt_tokens: 2, completion_tokens: 2, total_tokens: 4 },
    });
  });

  it("streams words and ends with usage", async () => {
    const body = JSON.stringify({
      model: "echo",
      stream: true,
      messages: [{ role: "user", content: "one two" }],
    });
    const answer = await post(server, "echo/chat/completions", { body });
    expect(answer.headers["content-type"]).toContain("text/event-stream");
    const events = answer.body.split("\n\n").filter((event) => event !== "");
    expect(events.at(-1)).toBe("data: [DONE]");
    const chunks = events.slice(0, -1).map((event) => JSON.parse(event.slice(6)) as Record<string, never>);
    const text = chunks
      .map(
        (chunk: { choices?: { delta?: { content?: string } }[] }) => chunk.choices?.[0]?.delta?.content ?? "",
      )
      .join("");
    expect(text).toBe("one two");
    expect(chunks.at(-1)).toMatchObject({ choices: [], usage: { completion_tokens: 2 } });
  });

  it("lists its model and refuses what it does not serve in OpenAI's shape", async () => {
    expect(JSON.parse((await send(server, "GET", callPath("echo/models"))).body)).toMatchObject({
      data: [{ id: "echo" }],
    });
    const answer = await post(server, "echo/images/generations");
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "not_found" } });
  });
});
