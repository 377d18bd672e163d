/** Contract sections 1.1 and 4.1: built-in and custom providers, the echo provider, stored provider keys. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { BUILT_IN_PROVIDERS } from "../../packages/signalbox/src/gateway/providers/built-in.ts";
import { createProvider } from "../../packages/signalbox/src/gateway/providers/provider.ts";
import type { ProviderPeer } from "../peers/provider.ts";
import { callPath, CHAT, post, readLogs, send, setGateway, startWithProvider } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: { openai: at, "azure-openai": at },
      gateway: { allowPrivateCustomProviders: true },
    },
    environment: { OPENAI_API_KEY: "sk-default", OPENAI_API_KEY_TEAM: "sk-team" },
  })));
});
afterAll(() => stop());
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

  it.each([
    ["azure-openai", "evil.example%2f/x/y"],
    ["azure-openai", "resource.evil.example/x/y"],
    ["aws-bedrock", "bedrock-runtime/evil.example%23/x"],
    ["google-vertex-ai", "v1/projects/p/locations/evil.example%2f/x"],
    ["google-vertex-ai", "chat/completions"],
  ])("a path of %s that would change the host is refused: %s", async (slug, path) => {
    const answer = await post(server, `${slug}/${path}`);
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.body)).toMatchObject({ internalCode: 2002 });
  });
});

describe("custom providers", () => {
  const path = "/accounts/default/ai-gateway/custom-providers";

  it("an account's own provider is reached below its base URL, with its headers", async () => {
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

  it("the providers of one account are not visible to another", async () => {
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
  ])("an invalid %s is refused", async (name, change) => {
    const { status, body } = await server.api("POST", path, {
      name: "x",
      slug: "x",
      base_url: "https://example.com",
      ...change,
    });
    expect(status).toBe(400);
    expect(body.errors[0].message).toContain(name);
  });

  it("only https and public addresses are accepted unless the operator allows others", async () => {
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

describe("stored provider keys", () => {
  const path = "/accounts/default/ai-gateway/gateways/default/provider_configs";
  const plain = (headers: Record<string, string> = {}) =>
    post(server, "openai/chat/completions", { headers });
  const sentKey = () => provider.requests.at(-1)?.headers.authorization;
  beforeAll(() => setGateway(server, { allow_anonymous_keys: true }));

  it("a stored key is used for calls without a credential, by default or by alias", async () => {
    await plain();
    expect(sentKey()).toBeUndefined();
    await server.api("POST", path, { alias: "main", default_config: true, provider_slug: "openai" });
    await server.api("POST", path, {
      alias: "team",
      default_config: false,
      provider_slug: "openai",
      secret_id: "OPENAI_API_KEY_TEAM",
    });
    await plain();
    expect(sentKey()).toBe("Bearer sk-default");
    await plain({ authorization: "Bearer own" });
    expect(sentKey()).toBe("Bearer own");
    await plain({ authorization: "Bearer own", "gw-aig-byok-alias": "team" });
    expect(sentKey()).toBe("Bearer sk-team");
    const step = { provider: "openai", endpoint: "chat/completions", query: JSON.parse(CHAT) as object };
    await send(server, "POST", "/v1/default/default", { body: JSON.stringify([step]) });
    expect(sentKey()).toBe("Bearer sk-default");
  });

  it("an alias that is missing or has no value is refused with 2040", async () => {
    const unknown = await plain({ "cf-aig-byok-alias": "nobody" });
    expect(unknown.status).toBe(400);
    expect(JSON.parse(unknown.body)).toMatchObject({
      internalCode: 2040,
      message: expect.stringContaining("main, team") as string,
    });
    await server.api("POST", path, {
      alias: "empty",
      default_config: false,
      provider_slug: "openai",
      secret_id: "OPENAI_API_KEY_EMPTY",
    });
    expect(JSON.parse((await plain({ "gw-aig-byok-alias": "empty" })).body)).toMatchObject({
      internalCode: 2040,
    });
  });

  it("a stored key appears only in the upstream request", async () => {
    const { body } = await server.api("GET", path);
    const rows = await readLogs(server);
    for (const text of [JSON.stringify(body), JSON.stringify(rows), JSON.stringify(server.logs)]) {
      expect(text).not.toContain("sk-default");
      expect(text).not.toContain("sk-team");
    }
    const { result } = body as { result: { id: string; alias: string }[] };
    for (const { id } of result) expect((await server.api("DELETE", `${path}/${id}`)).status).toBe(200);
    await plain();
    expect(sentKey()).toBeUndefined();
  });
});

describe("the built-in echo provider", () => {
  it("a chat completion is deterministic and has usage", async () => {
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

  it("a stream sends words and ends with usage", async () => {
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

  it("the model is listed, and unknown requests get an error in OpenAI's shape", async () => {
    expect(JSON.parse((await send(server, "GET", callPath("echo/models"))).body)).toMatchObject({
      data: [{ id: "echo" }],
    });
    const answer = await post(server, "echo/images/generations");
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.body)).toMatchObject({ error: { code: "not_found" } });
  });
});
