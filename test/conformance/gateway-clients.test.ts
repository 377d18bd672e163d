/** Unmodified provider SDKs with the gateway's path as base URL and the gateway's header as default header. */
import Anthropic from "@anthropic-ai/sdk";
import { createOpenAI } from "@ai-sdk/openai";
import { GoogleGenAI } from "@google/genai";
import { generateText, streamText } from "ai";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { anthropic, ANTHROPIC_KEY } from "../peers/anthropic.ts";
import { gemini, GEMINI_KEY } from "../peers/gemini.ts";
import { openAi, OPENAI_KEY } from "../peers/openai.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { readLogs, setGateway } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const peers: ProviderPeer[] = [];
let server: TestServer;
let base: string;
let headers: Record<string, string>;
beforeAll(async () => {
  for (const answer of [openAi, anthropic, gemini]) peers.push(await startProvider(answer));
  const [openai, claude, google] = peers.map((peer) => ({ baseUrl: peer.url }));
  if (openai === undefined || claude === undefined || google === undefined) throw new Error("no peers");
  server = await startTestServer({
    file: { providers: { openai, anthropic: claude, "google-ai-studio": google } },
  });
  base = `${server.url}/v1/default/default`;
  await setGateway(server, { authentication: true });
  const { body } = await server.api("POST", "/accounts/default/ai-gateway/gateways/default/tokens", {});
  headers = { "gw-aig-authorization": `Bearer ${(body as { result: { token: string } }).result.token}` };
});
afterAll(async () => {
  await server.stop();
  for (const peer of peers) await peer.close();
});

async function lastLog(): Promise<Record<string, unknown>> {
  const [row] = await readLogs(server);
  if (row === undefined) throw new Error("no log row");
  return row;
}

describe("openai", () => {
  const client = (options: ConstructorParameters<typeof OpenAI>[0] = {}) =>
    new OpenAI({
      baseURL: `${base}/openai`,
      apiKey: OPENAI_KEY,
      defaultHeaders: headers,
      maxRetries: 0,
      ...options,
    });
  const messages = [{ role: "user" as const, content: "Hello" }];

  it("a chat completes, and its log row exists when the response ends", async () => {
    const completion = await client().chat.completions.create({ model: "gpt-4o-mini", messages });
    expect(completion.choices[0]?.message.content).toBe("Hello there");
    expect(completion._request_id).toBe("req_from_openai");
    expect(await lastLog()).toMatchObject({
      provider: "openai",
      model: "gpt-4o-mini",
      path: "chat/completions",
      request_type: "chat",
      status_code: 200,
      success: true,
      cached: false,
      tokens_in: 12,
      tokens_out: 7,
      step: 0,
    });
    expect((await lastLog())["cost"]).toBeGreaterThan(0);
  });

  it("a chat streams with usage", async () => {
    const stream = await client().chat.completions.create({
      model: "gpt-4o-mini",
      messages,
      stream: true,
      stream_options: { include_usage: true },
    });
    let text = "";
    for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? "";
    expect(text).toBe("Hello there");
    expect(await lastLog()).toMatchObject({ tokens_in: 12, tokens_out: 7, success: true });
  });

  it("responses (whole and streamed), embeddings and models work", async () => {
    const response = await client().responses.create({ model: "gpt-4o-mini", input: "Hello" });
    expect(response.output_text).toBe("Hello there");
    expect(await lastLog()).toMatchObject({ request_type: "responses", tokens_in: 12, tokens_out: 7 });
    const stream = await client().responses.create({ model: "gpt-4o-mini", input: "Hello", stream: true });
    const types: string[] = [];
    for await (const event of stream) types.push(event.type);
    expect(types.at(-1)).toBe("response.completed");
    expect(await lastLog()).toMatchObject({ tokens_in: 12, tokens_out: 7 });
    const embeddings = await client().embeddings.create({
      model: "text-embedding-3-small",
      input: "Hello",
      encoding_format: "float",
    });
    expect(embeddings.data[0]?.embedding).toEqual([0.25, -0.5]);
    expect(await lastLog()).toMatchObject({ request_type: "embeddings", tokens_in: 5 });
    expect((await client().models.list()).data[0]?.id).toBe("gpt-4o-mini");
  });

  it("an error of the provider is reported as the provider's", async () => {
    const failure = await client({ apiKey: "sk-wrong" })
      .chat.completions.create({ model: "gpt-4o-mini", messages })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.AuthenticationError);
    const error = failure as InstanceType<typeof OpenAI.AuthenticationError>;
    expect(error.code).toBe("invalid_api_key");
    expect(error.headers.get("gw-aig-error-origin")).toBe("provider");
    expect(await lastLog()).toMatchObject({ status_code: 401, success: false });
  });

  it("a refusal of the gateway is reported as the gateway's and leaves no row", async () => {
    const before = await readLogs(server);
    const failure = await client({ defaultHeaders: {} })
      .chat.completions.create({ model: "gpt-4o-mini", messages })
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(OpenAI.AuthenticationError);
    const error = failure as InstanceType<typeof OpenAI.AuthenticationError>;
    expect(error.headers.get("gw-aig-error-origin")).toBe("gateway");
    expect(error.error).toEqual([{ code: 2009, message: "Unauthorized" }]);
    expect(await readLogs(server)).toHaveLength(before.length);
  });

  it("the echo provider works without a key", async () => {
    const completion = await client({ baseURL: `${base}/echo`, apiKey: "none" }).chat.completions.create({
      model: "echo",
      messages,
    });
    expect(completion.choices[0]?.message.content).toBe("Hello");
    expect(completion.usage?.total_tokens).toBe(4);
  });
});

describe("@anthropic-ai/sdk", () => {
  const client = (apiKey = ANTHROPIC_KEY) =>
    new Anthropic({ baseURL: `${base}/anthropic`, apiKey, defaultHeaders: headers, maxRetries: 0 });
  const wanted = {
    model: "claude-opus-4-8",
    max_tokens: 100,
    messages: [{ role: "user" as const, content: "Hello" }],
  };

  it("a message is created, whole and streamed, with usage in the log", async () => {
    const message = await client().messages.create(wanted);
    expect(message.content).toMatchObject([{ type: "text", text: "Hello there" }]);
    expect(await lastLog()).toMatchObject({
      provider: "anthropic",
      request_type: "messages",
      tokens_in: 25,
      tokens_out: 6,
    });
    const final = await client().messages.stream(wanted).finalMessage();
    expect(final.content).toMatchObject([{ type: "text", text: "Hello there" }]);
    expect(await lastLog()).toMatchObject({ tokens_in: 25, tokens_out: 6, success: true });
  });

  it("an error of the provider is reported", async () => {
    await expect(client("wrong").messages.create(wanted)).rejects.toMatchObject({
      status: 401,
      error: { error: { type: "authentication_error" } },
    });
  });
});

describe("@google/genai", () => {
  const client = () =>
    new GoogleGenAI({ apiKey: GEMINI_KEY, httpOptions: { baseUrl: `${base}/google-ai-studio`, headers } });
  const wanted = { model: "gemini-2.5-flash", contents: "Hello" };

  it("content is generated, whole and streamed, with usage in the log", async () => {
    const response = await client().models.generateContent(wanted);
    expect(response.text).toBe("Hello there");
    expect(await lastLog()).toMatchObject({
      provider: "google-ai-studio",
      model: "gemini-2.5-flash",
      request_type: "generate_content",
      tokens_in: 9,
      tokens_out: 7,
    });
    let text = "";
    for await (const chunk of await client().models.generateContentStream(wanted)) text += chunk.text ?? "";
    expect(text).toBe("Hello there");
    expect(await lastLog()).toMatchObject({ tokens_in: 9, tokens_out: 7 });
  });
});

describe("ai with @ai-sdk/openai", () => {
  const openai = () => createOpenAI({ baseURL: `${base}/openai`, apiKey: OPENAI_KEY, headers });

  it("text is generated and streamed through responses and chat", async () => {
    for (const model of [openai()("gpt-4o-mini"), openai().chat("gpt-4o-mini")]) {
      const { text } = await generateText({ model, prompt: "Hello", maxRetries: 0 });
      expect(text).toBe("Hello there");
      let streamed = "";
      for await (const part of streamText({ model, prompt: "Hello", maxRetries: 0 }).textStream)
        streamed += part;
      expect(streamed).toBe("Hello there");
    }
    expect(peers[0]?.requests.some(({ url }) => url === "/v1/responses")).toBe(true);
    expect(peers[0]?.requests.some(({ url }) => url === "/v1/chat/completions")).toBe(true);
  });

  it("a refusal of the gateway is reported with its body", async () => {
    const model = createOpenAI({ baseURL: `${base}/openai`, apiKey: OPENAI_KEY }).chat("gpt-4o-mini");
    await expect(generateText({ model, prompt: "Hello", maxRetries: 0 })).rejects.toMatchObject({
      statusCode: 401,
      responseBody: expect.stringContaining('"code":2009') as string,
    });
  });
});
