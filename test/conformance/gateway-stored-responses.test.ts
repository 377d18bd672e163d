/** Responses that clients read later: those of translated calls, those in the background, and those that a provider keeps. */
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { type ProviderPeer, sendJson, startProvider } from "../peers/provider.ts";
import { readLogs } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";
import { waitUntil } from "../support/wait-until.ts";

let claude: ProviderPeer;
let other: ProviderPeer;
let server: TestServer;
let openai: OpenAI;
let stranger: OpenAI;

beforeAll(async () => {
  claude = await startProvider(anthropic);
  other = await startProvider((request, response) =>
    sendJson(response, 200, {
      id: "resp_far",
      object: "response",
      status: request.method === "POST" ? "queued" : "completed",
      output: [],
    }),
  );
  server = await startTestServer({
    file: {
      providers: {
        anthropic: { baseUrl: claude.url },
        openai: { baseUrl: `${other.url}/openai/v1` },
        grok: { baseUrl: `${other.url}/grok/v1` },
      },
    },
    environment: { ANTHROPIC_API_KEY: ANTHROPIC_KEY, OPENAI_API_KEY: "x", GROK_API_KEY: "x" },
  });
  for (const [slug, secret] of [
    ["anthropic", "ANTHROPIC_API_KEY"],
    ["openai", "OPENAI_API_KEY"],
    ["grok", "GROK_API_KEY"],
  ]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: secret,
    });
  }
  const client = async () =>
    new OpenAI({
      baseURL: `${server.url}/v1`,
      apiKey: await server.token(["gateway.run"]),
      maxRetries: 0,
    });
  openai = await client();
  stranger = await client();
});

beforeEach(() => {
  claude.requests.length = 0;
  other.requests.length = 0;
  claude.answer = anthropic;
});

afterAll(async () => {
  await server.stop();
  await claude.close();
  await other.close();
});

const MODEL = "anthropic/claude-opus-5";

async function until(check: () => boolean | Promise<boolean>): Promise<void> {
  await waitUntil(check, Boolean);
}

describe("an answer of a provider without the responses API", () => {
  it("is read, its input listed, and deleted", async () => {
    const { id, output_text: text } = await openai.responses.create({ model: MODEL, input: "Hello" });
    const again = await openai.responses.retrieve(id);
    expect([again.id, again.output_text]).toEqual([id, text]);
    const items = await openai.responses.inputItems.list(id);
    expect(items.data).toMatchObject([{ type: "message", role: "user" }]);
    await openai.responses.delete(id);
    expect(claude.requests).toHaveLength(1);
    expect(other.requests).toHaveLength(0);
    // It is gone, so OpenAI is asked.
    await openai.responses.retrieve(id);
    expect(other.requests.map(({ url }) => url)).toEqual([`/openai/v1/responses/${id}`]);
  });

  it("is found by its caller only", async () => {
    const { id } = await openai.responses.create({ model: MODEL, input: "Hello" });
    await stranger.responses.retrieve(id);
    expect(other.requests.map(({ url }) => url)).toEqual([`/openai/v1/responses/${id}`]);
  });

  it("is not kept if it is not to be stored", async () => {
    // The provider gives every answer the same id, and this caller keeps none.
    const { id } = await stranger.responses.create({ model: MODEL, input: "Hello", store: false });
    await stranger.responses.retrieve(id);
    expect(other.requests).toHaveLength(1);
  });
});

describe("background, with a model whose provider has none", () => {
  it("answers at once, and the response is read when it is written", async () => {
    let answer: () => void = () => undefined;
    claude.answer = (...given) => {
      answer = () => void anthropic(...given);
    };
    const started = await openai.responses.create({ model: MODEL, input: "Hello", background: true });
    expect(started).toMatchObject({ status: "in_progress", background: true, output: [] });
    await until(() => claude.requests.length === 1);
    expect((await openai.responses.retrieve(started.id)).status).toBe("in_progress");
    const rows = (await readLogs(server)).length;
    answer();
    await until(async () => (await openai.responses.retrieve(started.id)).status === "completed");
    const done = await openai.responses.retrieve(started.id);
    expect(done).toMatchObject({ id: started.id, background: true });
    expect(done.output_text).toMatch(/^Hello/);
    await until(async () => (await readLogs(server)).length === rows + 1);
    claude.answer = anthropic;
    // The next turn can refer to it.
    await openai.responses.create({ model: MODEL, input: "And?", previous_response_id: started.id });
    expect(JSON.parse(claude.requests.at(-1)?.body ?? "").messages).toHaveLength(3);
  });

  it("is cancelled, and its call ends", async () => {
    let isClosed = false;
    claude.answer = (_request, response) => {
      response.on("close", () => (isClosed = true));
    };
    const { id } = await openai.responses.create({ model: MODEL, input: "Hello", background: true });
    await until(() => claude.requests.length === 1);
    expect((await openai.responses.cancel(id)).status).toBe("cancelled");
    await until(() => isClosed);
    expect((await openai.responses.retrieve(id)).status).toBe("cancelled");
    await expect(openai.responses.cancel(id)).rejects.toMatchObject({ status: 400 });
  });

  it("has failed if its call did", async () => {
    claude.answer = (_, response) =>
      sendJson(response, 400, {
        type: "error",
        error: { type: "invalid_request_error", message: "too odd" },
      });
    const { id } = await openai.responses.create({ model: MODEL, input: "Hello", background: true });
    await until(async () => (await openai.responses.retrieve(id)).status === "failed");
    expect((await openai.responses.retrieve(id)).error?.message).toContain("too odd");
  });

  it.each([
    ["cannot be streamed", { stream: true }],
    ["must be stored", { store: false }],
    ["must be a request that can be translated", { input: [{ type: "nonsense" }] }],
  ])("%s", async (_, more) => {
    const body = { model: MODEL, input: "Hello", background: true, ...more };
    await expect(openai.responses.create(body as never)).rejects.toMatchObject({ status: 400 });
    expect(claude.requests).toHaveLength(0);
  });
});

it("asks the provider that keeps a response", async () => {
  const { id } = await openai.responses.create({ model: "grok/grok-4", input: "Hello", background: true });
  expect(JSON.parse(other.requests[0]?.body ?? "")).toMatchObject({ background: true, model: "grok-4" });
  expect((await openai.responses.retrieve(id)).status).toBe("completed");
  expect(other.requests.map(({ url }) => url)).toEqual(["/grok/v1/responses", `/grok/v1/responses/${id}`]);
});
