/** The vendors' own clients read what this package writes: streams, whole responses and errors, from every upstream. */
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import OpenAISix from "openai-6";
import { afterEach, describe, expect, it, vi } from "vitest";
import type { Dialect } from "./dialect.ts";
import { translateError, translateResponse } from "./index.ts";
import { contextOf, DIALECT_NAMES, translateStream } from "./translate-fixture.ts";
import { UPSTREAM_STREAMS } from "./upstream-streams-fixture.ts";
import { UPSTREAM_RESPONSES } from "./upstream-responses-fixture.ts";

const TEXT = "Grüße aus 北京 😀";
const others = (from: Dialect) => DIALECT_NAMES.filter((to) => to !== from);

function answering(body: string, type: string, status = 200): typeof fetch {
  return () => Promise.resolve(new Response(body, { status, headers: { "content-type": type } }));
}

const events = (from: Dialect, to: Dialect, more = {}) =>
  answering(
    translateStream(contextOf(from, to, { stream: true, ...more }), UPSTREAM_STREAMS[to]),
    "text/event-stream",
  );
const whole = (from: Dialect, to: Dialect) =>
  answering(
    JSON.stringify(translateResponse(contextOf(from, to), UPSTREAM_RESPONSES[to])),
    "application/json",
  );

const chatParams = { model: "m", messages: [{ role: "user" as const, content: "Hi" }] };
const messageParams = { model: "m", max_tokens: 9, messages: [{ role: "user" as const, content: "Hi" }] };

afterEach(() => {
  vi.unstubAllGlobals();
});

describe.each([
  ["openai 7", OpenAI],
  ["openai 6", OpenAISix as unknown as typeof OpenAI],
])("%s", (_name, Client) => {
  const client = (answer: typeof fetch) => new Client({ apiKey: "k", fetch: answer, maxRetries: 0 });

  it.each(others("chat"))("reads a chat stream from %s", async (to) => {
    const usage = { stream_options: { include_usage: true } };
    const runner = client(events("chat", to, usage)).chat.completions.stream({ ...chatParams, ...usage });
    const completion = await runner.finalChatCompletion();
    const [choice] = completion.choices;
    expect(choice?.message.content).toBe(TEXT);
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(choice?.message.tool_calls).toMatchObject([
      { id: "call_a", function: { name: "weather", arguments: '{"city":"Bern"}' } },
      { id: "call_b", function: { name: "weather", arguments: '{"city":"Roma"}' } },
    ]);
    expect(completion.usage).toMatchObject({ prompt_tokens: 30, completion_tokens: 20 });
  });

  it.each(others("chat"))("reads a whole completion from %s", async (to) => {
    const completion = await client(whole("chat", to)).chat.completions.create(chatParams);
    expect(completion.choices[0]?.message.content).toBe(TEXT);
    expect(completion.choices[0]?.message.tool_calls).toHaveLength(2);
    expect(completion.usage?.total_tokens).toBe(50);
  });

  it.each(others("responses"))("reads a response stream from %s", async (to) => {
    const runner = client(events("responses", to)).responses.stream({ model: "m", input: "Hi" });
    const types: string[] = [];
    for await (const event of runner) types.push(event.type);
    const response = await runner.finalResponse();
    expect(response.output_text).toBe(TEXT);
    expect(response.status).toBe("completed");
    expect(response.output.filter((item) => item.type === "function_call")).toMatchObject([
      { call_id: "call_a", name: "weather", arguments: '{"city":"Bern"}' },
      { call_id: "call_b", name: "weather", arguments: '{"city":"Roma"}' },
    ]);
    expect(response.usage).toMatchObject({ input_tokens: 30, output_tokens: 20 });
    expect(types.at(0)).toBe("response.created");
    expect(types.at(-1)).toBe("response.completed");
  });

  it.each(others("responses"))("reads a whole response from %s", async (to) => {
    const response = await client(whole("responses", to)).responses.create({ model: "m", input: "Hi" });
    expect(response.output_text).toBe(TEXT);
    expect(response.output.filter((item) => item.type === "function_call")).toHaveLength(2);
  });

  it("throws an upstream's error of another dialect with its status and message", async () => {
    const upstream = { type: "error", error: { type: "rate_limit_error", message: "Slow down" } };
    const { status, body } = translateError({ from: "chat", to: "messages" }, 429, upstream);
    const answer = answering(JSON.stringify(body), "application/json", status);
    await expect(client(answer).chat.completions.create(chatParams)).rejects.toMatchObject({
      status: 429,
      code: "rate_limit_exceeded",
      message: expect.stringContaining("Slow down") as string,
    });
  });

  it.each(["chat", "responses"] as const)("throws when a %s stream breaks off", async (from) => {
    const upstream = UPSTREAM_STREAMS.messages.slice(0, 1200);
    const answer = answering(
      translateStream(contextOf(from, "messages", { stream: true }), upstream),
      "text/event-stream",
    );
    const run = async () => {
      const stream =
        from === "chat"
          ? await client(answer).chat.completions.create({ ...chatParams, stream: true })
          : await client(answer).responses.create({ model: "m", input: "Hi", stream: true });
      for await (const event of stream) expect(event).toBeDefined();
    };
    await expect(run()).rejects.toThrow("broke off");
  });
});

describe("@anthropic-ai/sdk", () => {
  const client = (answer: typeof fetch) => new Anthropic({ apiKey: "k", fetch: answer, maxRetries: 0 });

  it.each(others("messages"))("reads a stream from %s", async (to) => {
    const message = await client(events("messages", to)).messages.stream(messageParams).finalMessage();
    expect(message.stop_reason).toBe("tool_use");
    expect(message.content.flatMap((block) => (block.type === "text" ? [block.text] : []))).toEqual([TEXT]);
    expect(message.content.filter((block) => block.type === "tool_use")).toMatchObject([
      { id: "call_a", name: "weather", input: { city: "Bern" } },
      { id: "call_b", name: "weather", input: { city: "Roma" } },
    ]);
    expect(message.content[0]).toMatchObject({ type: "thinking", thinking: "Let me think ✓" });
    expect(message.usage).toMatchObject({ input_tokens: 20, cache_read_input_tokens: 10, output_tokens: 20 });
  });

  it.each(others("messages"))("reads a whole message from %s", async (to) => {
    const message = await client(whole("messages", to)).messages.create(messageParams);
    expect(message.content.flatMap((block) => (block.type === "text" ? [block.text] : []))).toEqual([TEXT]);
    expect(message.content.filter((block) => block.type === "tool_use")).toHaveLength(2);
  });

  it("throws errors and broken streams", async () => {
    const { status, body } = translateError({ from: "messages", to: "chat" }, 400, {
      error: { message: "Bad field" },
    });
    const answer = answering(JSON.stringify(body), "application/json", status);
    await expect(client(answer).messages.create(messageParams)).rejects.toThrow("Bad field");
    const broken = translateStream(contextOf("messages", "chat"), UPSTREAM_STREAMS.chat.slice(0, 600));
    const stream = client(answering(broken, "text/event-stream")).messages.stream(messageParams);
    await expect(stream.finalMessage()).rejects.toThrow("broke off");
  });
});

describe("@google/genai", () => {
  const client = (answer: typeof fetch) => {
    vi.stubGlobal("fetch", answer);
    return new GoogleGenAI({ apiKey: "k" });
  };

  it.each(others("gemini"))("reads a stream from %s", async (to) => {
    const stream = await client(events("gemini", to)).models.generateContentStream({
      model: "m",
      contents: "Hi",
    });
    let text = "";
    const calls: unknown[] = [];
    let tokens = 0;
    for await (const chunk of stream) {
      const parts = chunk.candidates?.[0]?.content?.parts ?? [];
      for (const part of parts) if (part.thought !== true) text += part.text ?? "";
      calls.push(...(chunk.functionCalls ?? []));
      tokens = chunk.usageMetadata?.totalTokenCount ?? tokens;
    }
    expect(text).toBe(TEXT);
    expect(tokens).toBe(50);
    expect(calls).toMatchObject([
      { name: "weather", args: { city: "Bern" } },
      { name: "weather", args: { city: "Roma" } },
    ]);
  });

  it.each(others("gemini"))("reads a whole response from %s", async (to) => {
    const response = await client(whole("gemini", to)).models.generateContent({ model: "m", contents: "Hi" });
    expect(response.functionCalls).toHaveLength(2);
    expect(response.usageMetadata?.totalTokenCount).toBe(50);
  });
});
