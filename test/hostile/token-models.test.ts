/** A caller whose token is limited to some models, providers or kinds of calls tries to use others. */
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import type { ProviderPeer } from "../peers/provider.ts";
import { callPath, readLogs, send, setGateway, startWithProvider } from "../support/gateway.ts";
import type { TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
let stop: () => Promise<void>;
let limited: string;
beforeAll(async () => {
  ({ provider, server, stop } = await startWithProvider((at) => ({
    file: {
      providers: {
        openai: at,
        openrouter: at,
        ollama: at,
        "google-ai-studio": at,
        "azure-openai": at,
        "aws-bedrock": at,
        "workers-ai": at,
        huggingface: at,
        replicate: at,
      },
      gateway: { replayBodyBytes: 2048 },
    },
  })));
  await setGateway(server, { authentication: true });
  limited = await make({ models: ["*/good*", "!*good-pro*", "echo/*"] });
});
afterAll(() => stop());
beforeEach(() => {
  provider.requests.length = 0;
});

async function make(fields: object): Promise<string> {
  const { status, body } = await server.api("POST", "/accounts/default/tokens", {
    name: "limited",
    permissions: ["gateway.run"],
    ...fields,
  });
  expect(status).toBe(200);
  return (body as { result: { token: string } }).result.token;
}

const call = (
  path: string,
  body: unknown,
  {
    token = limited,
    method = "POST",
    headers = {},
  }: { token?: string; method?: string; headers?: Record<string, string> } = {},
) =>
  send(server, method, callPath(path), {
    ...(body === undefined
      ? {}
      : { body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body) }),
    headers: { "content-type": "application/json", authorization: `Bearer ${token}`, ...headers },
  });

const chat = (model: unknown, more: object = {}) => ({ model, messages: [], ...more });

function expectRefused(answer: { status: number; body: string }): void {
  expect(JSON.parse(answer.body)).toMatchObject({ httpCode: 403, internalCode: 2043 });
  expect(answer.status).toBe(403);
  expect(provider.requests).toEqual([]);
}

describe("the model of a call", () => {
  it.each([
    ["openai/chat/completions", chat("good-1")],
    ["openai/v1/responses", { model: "good-1", input: "x" }],
    ["openrouter/chat/completions", chat("good/x", { models: ["good-2"] })],
    ["google-ai-studio/v1beta/models/good-1:generateContent", { contents: [] }],
    ["azure-openai/res/good-1/chat/completions?api-version=1", { messages: [] }],
    ["aws-bedrock/bedrock-runtime/us-east-1/model/good-1/invoke", {}],
    ["openai/chat/completions", chat("GOOD-1")],
  ])("%s with an allowed model is served", async (path, body) => {
    expect((await call(path, body)).status).toBe(200);
  });

  it.each<[string, string, unknown]>([
    ["another model", "openai/chat/completions", chat("bad")],
    ["an excluded model", "openai/chat/completions", chat("good-pro-2")],
    ["an excluded model in capitals", "openai/chat/completions", chat("GOOD-PRO")],
    [
      "two members, the bad one last",
      "openai/chat/completions",
      '{"model":"good","model":"bad","messages":[]}',
    ],
    [
      "two members, the bad one first",
      "openai/chat/completions",
      '{"model":"bad","model":"good","messages":[]}',
    ],
    ["a member in capitals", "ollama/api/chat", '{"model":"good","Model":"bad","messages":[]}'],
    [
      "a member with an escape",
      "openai/chat/completions",
      '{"model":"good","mod\\u0065l":"bad","messages":[]}',
    ],
    ["a list of alternatives", "openrouter/chat/completions", chat("good", { models: ["good", "bad"] })],
    ["a list of fallbacks", "openrouter/chat/completions", chat("good", { fallbacks: [{ model: "bad" }] })],
    [
      "a tool with a model",
      "openai/responses",
      { model: "good", tools: [{ type: "image_generation", model: "bad" }] },
    ],
    ["no model", "openai/responses", { input: "x" }],
    ["a model that is no text", "openai/responses", { model: { id: "bad" } }],
    ["a path of Gemini", "google-ai-studio/v1beta/models/bad:generateContent", { model: "good" }],
    ["a path of Gemini, encoded", "google-ai-studio/v1beta/models/b%61d:generateContent", { model: "good" }],
    ["a tuned model of Gemini", "google-ai-studio/v1beta/tunedModels/bad:generateContent", { model: "good" }],
    ["a deployment of Azure", "azure-openai/res/bad/chat/completions", chat("good")],
    [
      "a deployment of Azure, spelt out",
      "azure-openai/res/openai/deployments/bad/chat/completions",
      chat("good"),
    ],
    ["a model of Bedrock", "aws-bedrock/bedrock-runtime/us-east-1/model/bad/converse", { model: "good" }],
    ["a model of Workers AI", "workers-ai/@cf/meta/bad", { model: "good" }],
    ["a model of Hugging Face", "huggingface/owner/bad", { model: "good", inputs: "x" }],
    ["a model of Hugging Face as chat", "huggingface/bad/v1/chat/completions", chat("good")],
    ["a version of Replicate", "replicate/predictions", { model: "good", version: "bad" }],
    ["a batch", "openai/batches", { model: "good", input_file_id: "f" }],
    ["a query", "openai/chat/completions?model=bad", chat("good")],
    ["a long model", "openai/responses", { model: `good${"x".repeat(600)}`, input: "x" }],
  ])("%s is refused", async (_, path, body) => {
    expectRefused(await call(path, body));
  });

  it("a body that cannot be read is refused", async () => {
    const good = JSON.stringify(chat("good"));
    expectRefused(
      await call("openai/chat/completions", gzipSync(good), { headers: { "content-encoding": "gzip" } }),
    );
    expectRefused(
      await call(
        "openai/audio/transcriptions",
        '--x\r\ncontent-disposition: form-data; name="model"\r\n\r\ngood\r\n--x--',
        {
          headers: { "content-type": "multipart/form-data; boundary=x" },
        },
      ),
    );
    // Larger than what is kept in memory: the end of the body is not known when the call is checked.
    expectRefused(await call("openai/chat/completions", chat("good", { pad: "x".repeat(5000) })));
    expectRefused(
      await call("openai/responses", `${good} {"model":"bad"}`, {
        headers: { "content-type": "text/plain" },
      }),
    );
  });

  it("every step of the universal endpoint is checked, and the message names what is allowed", async () => {
    const step = (model: string) => ({
      provider: "openai",
      endpoint: "chat/completions",
      query: chat(model),
    });
    const answer = await send(server, "POST", "/v1/default/default", {
      body: JSON.stringify([step("good"), step("bad")]),
      headers: { authorization: `Bearer ${limited}` },
    });
    expectRefused(answer);
    expect(JSON.parse(answer.body)).toMatchObject({
      message: "step 1: The token may not call openai/bad; allowed models: */good*, !*good-pro*, echo/*",
    });
  });

  it.each([
    ["GET", "openai/files"],
    ["GET", "openai/files/file-1/content"],
    ["GET", "openai/responses/resp_1"],
    ["HEAD", "openai/files"],
    ["GET", "openai/organization/admin_api_keys"],
    ["GET", "openai/files;/models"],
    ["GET", "openai/files%2fmodels"],
    ["GET", "openai/models/bad"],
    ["DELETE", "openai/files/file-1"],
    ["DELETE", "openai/models/good-1"],
    ["OPTIONS", "openai/files"],
    ["DELETE", "ollama/api/delete"],
  ])("%s %s, which names no model or only its data, is refused", async (method, path) => {
    const answer = await call(path, undefined, { method });
    expect([answer.status, provider.requests]).toEqual([403, []]);
  });

  it("what the caller reads with a key of its own is the caller's", async () => {
    const headers = { authorization: "Bearer sk-own", "gw-aig-authorization": `Bearer ${limited}` };
    for (const [method, path] of [
      ["GET", "openai/files"],
      ["DELETE", "openai/files/file-1"],
    ] as const)
      expect((await call(path, undefined, { method, headers })).status).toBe(200);
  });

  it("the kind other lets a token read with stored keys, and delete nothing", async () => {
    const token = await make({ models: ["openai/good*"], routes: ["chat", "models", "other"] });
    expect((await call("openai/files", undefined, { token, method: "GET" })).status).toBe(200);
    provider.requests.length = 0;
    expectRefused(await call("openai/files/file-1", undefined, { token, method: "DELETE" }));
  });

  it("the list of models may be read, and a provider whose models are all allowed is not looked at", async () => {
    for (const path of ["openai/models", "openai/v1/models", "openai/models/good-1"])
      expect((await call(path, undefined, { method: "GET" })).status).toBe(200);
    expect(
      (await call("echo/chat/completions", chat("any", { messages: [{ role: "user", content: "x" }] })))
        .status,
    ).toBe(200);
  });

  it("a change of the rules applies to the next call", async () => {
    const { body } = await server.api("POST", "/accounts/default/tokens", {
      name: "changing",
      permissions: ["gateway.run"],
      models: ["openai/a"],
    });
    const { id, token } = (body as { result: { id: string; token: string } }).result;
    expectRefused(await call("openai/chat/completions", chat("b"), { token }));
    await server.api("PATCH", `/accounts/default/tokens/${id}`, { models: ["openai/b"] });
    expect((await call("openai/chat/completions", chat("b"), { token })).status).toBe(200);
  });
});

describe("providers, kinds of calls and metadata", () => {
  it("another provider or kind of call is refused", async () => {
    const token = await make({ providers: ["open*", "!openrouter"], routes: ["chat", "models"] });
    expect((await call("openai/chat/completions", chat("x"), { token })).status).toBe(200);
    provider.requests.length = 0;
    expectRefused(await call("openrouter/chat/completions", chat("x"), { token }));
    expectRefused(await call("mistral/chat/completions", chat("x"), { token }));
    expectRefused(await call("openai/embeddings", { model: "x", input: "y" }, { token }));
    expectRefused(await call("openai/files", undefined, { token, method: "GET" }));
    expect((await call("openai/models", undefined, { token, method: "GET" })).status).toBe(200);
  });

  it("the token's metadata wins over the caller's, and token.* is reserved", async () => {
    const token = await make({
      metadata: { team: "search", tier: 1 },
      owner: "alice",
      tags: { cost: "r&d" },
    });
    const answer = await call("openai/chat/completions", chat("x"), {
      token,
      headers: { "gw-aig-metadata": '{"team":"other","note":"n"}' },
    });
    expect(answer.status).toBe(200);
    const [row] = await readLogs(server);
    expect(JSON.parse(String(row?.["metadata"]))).toEqual({
      team: "search",
      note: "n",
      tier: 1,
      "token.owner": "alice",
      "token.tags.cost": "r&d",
    });
    provider.requests.length = 0;
    const forged = await call("openai/chat/completions", chat("x"), {
      token,
      headers: { "cf-aig-metadata": '{"token.owner":"bob"}' },
    });
    expect([forged.status, provider.requests]).toEqual([400, []]);
    const made = await server.api("POST", "/accounts/default/tokens", {
      name: "x",
      permissions: ["gateway.run"],
      metadata: { "token.owner": "bob" },
    });
    expect(made.status).toBe(400);
  });

  it("the headers of a step of the universal endpoint do not replace the token's metadata", async () => {
    const token = await make({ metadata: { team: "search" }, owner: "alice" });
    const headers = { "gw-aig-metadata": '{"team":"other","note":"n"}' };
    const answer = await send(server, "POST", "/v1/default/default", {
      body: JSON.stringify([{ provider: "openai", endpoint: "chat/completions", headers, query: chat("x") }]),
      headers: { authorization: `Bearer ${token}` },
    });
    expect(answer.status).toBe(200);
    const [row] = await readLogs(server);
    expect(JSON.parse(String(row?.["metadata"]))).toEqual({
      team: "search",
      note: "n",
      "token.owner": "alice",
    });
  });
});
