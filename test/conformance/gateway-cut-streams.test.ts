/** Streams that break off after their first bytes: the client gets an error event of its API, and its connection is closed. */
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { callPath } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let provider: ProviderPeer;
let server: TestServer;
/** What the provider writes before it closes the connection. */
let first = "";
beforeAll(async () => {
  provider = await startProvider((_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    // The gateway must have read the first part when the connection breaks.
    response.write(first, () => setTimeout(() => response.destroy(), 30));
  });
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: provider.url },
        anthropic: { baseUrl: provider.url },
        "google-ai-studio": { baseUrl: provider.url },
      },
    },
  });
});
afterAll(async () => {
  await server.stop();
  await provider.close();
});

/** Reads until the connection breaks. */
async function readCut(path: string, body: object): Promise<{ text: string; isCut: boolean }> {
  const response = await fetch(server.url + callPath(path), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  let text = "";
  const decoder = new TextDecoder();
  try {
    for await (const chunk of response.body ?? [])
      text += decoder.decode(chunk as Uint8Array, { stream: true });
    return { text, isCut: false };
  } catch {
    return { text, isCut: true };
  }
}

const messages = [{ role: "user" as const, content: "Hi" }];
const EVENT = 'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n';

it.each([
  ["openai/chat/completions", { error: { type: "gateway_error", code: "2005" } }],
  ["openai/responses", { type: "error", code: "2005" }],
  ["anthropic/v1/messages", { type: "error", error: { type: "api_error" } }],
  ["google-ai-studio/v1beta/models/gemini-2.5-flash:streamGenerateContent", { error: { code: 502 } }],
])("a stream of %s that breaks off ends with an error event", async (path, expected) => {
  first = EVENT;
  const { text, isCut } = await readCut(path, { model: "gpt-4o-mini", stream: true, messages, input: "Hi" });
  expect(isCut).toBe(true);
  expect(text.startsWith(EVENT)).toBe(true);
  const data = /^data: (.*)\n\n$/m.exec(text.slice(EVENT.length))?.[1] ?? "";
  expect(JSON.parse(data)).toMatchObject(expected);
});

it("inside an event nothing is added: it would become a part of the event", async () => {
  first = 'data: {"choices":[{"ind';
  // The caller asks for usage itself, so that every byte is passed on as it arrives.
  const asks = { model: "m", stream: true, stream_options: { include_usage: true }, messages };
  const { text, isCut } = await readCut("openai/chat/completions", asks);
  expect({ text, isCut }).toEqual({ text: first, isCut: true });
});

it("the OpenAI and Anthropic SDKs throw, and do not take the part for the whole", async () => {
  first = EVENT;
  const openai = new OpenAI({
    apiKey: "k",
    baseURL: `${server.url}/v1/default/default/openai`,
    maxRetries: 0,
  });
  const chat = await openai.chat.completions.create({ model: "gpt-4o-mini", stream: true, messages });
  const readAll = async () => {
    for await (const chunk of chat) expect(chunk.choices).toHaveLength(1);
  };
  await expect(readAll()).rejects.toThrow(/broke off/);
  first = `event: message_start\ndata: ${JSON.stringify({ type: "message_start", message: { id: "m", type: "message", role: "assistant", content: [], model: "c", usage: { input_tokens: 1, output_tokens: 1 } } })}\n\n`;
  const anthropic = new Anthropic({
    apiKey: "k",
    baseURL: `${server.url}/v1/default/default/anthropic`,
    maxRetries: 0,
  });
  const stream = anthropic.messages.stream({ model: "claude-opus-5", max_tokens: 9, messages });
  await expect(stream.finalMessage()).rejects.toThrow(/broke off/);
});
