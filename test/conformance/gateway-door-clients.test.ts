/**
 * Real clients through the unified doors to providers of every dialect. The providers are played by aimock, an independent implementation,
 * which refuses requests that it has no answer for.
 */
import Anthropic from "@anthropic-ai/sdk";
import { LLMock } from "@copilotkit/aimock";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readLogs } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const mock = new LLMock({ port: 0, strict: true });
let server: TestServer;
let token: string;

beforeAll(async () => {
  // Under the names of every dialect.
  const usage = {
    prompt_tokens: 9,
    completion_tokens: 5,
    input_tokens: 9,
    output_tokens: 5,
    promptTokenCount: 9,
    candidatesTokenCount: 5,
  };
  mock.onMessage("hello", { content: "Hi there, how are you today?", usage });
  mock.on(
    { userMessage: "weather", hasToolResult: false },
    { toolCalls: [{ name: "get_weather", arguments: { city: "Paris", days: 2 } }] },
  );
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "It is 21 degrees" });
  mock.onMessage("refuse", { error: { message: "too rude", type: "invalid_request_error" }, status: 400 });
  await mock.start();
  server = await startTestServer({
    file: {
      providers: {
        openai: { baseUrl: mock.url },
        groq: { baseUrl: `${mock.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: mock.url },
        "google-ai-studio": { baseUrl: mock.url },
      },
    },
    environment: {
      OPENAI_API_KEY: "sk-openai",
      GROQ_API_KEY: "gsk",
      ANTHROPIC_API_KEY: "sk-ant",
      GOOGLE_AI_STUDIO_API_KEY: "goog",
    },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
  for (const [slug, name] of [
    ["openai", "OPENAI_API_KEY"],
    ["groq", "GROQ_API_KEY"],
    ["anthropic", "ANTHROPIC_API_KEY"],
    ["google-ai-studio", "GOOGLE_AI_STUDIO_API_KEY"],
  ]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: name,
    });
  }
  token = await server.token(["gateway.run"]);
});

afterAll(async () => {
  await server.stop();
  await mock.stop();
});

const MODELS = [
  ["openai/gpt-4o-mini", "openai"],
  ["groq/llama-4", "chat"],
  ["anthropic/claude-sonnet-4-5", "messages"],
  ["google/gemini-2.5-flash", "gemini"],
] as const;

const openAi = () => new OpenAI({ baseURL: `${server.url}/v1`, apiKey: token, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: token, maxRetries: 0 });

const PARAMETERS = {
  type: "object",
  properties: { city: { type: "string" }, days: { type: "integer" } },
  required: ["city"],
} as const;

async function lastRow(): Promise<Record<string, unknown>> {
  const [row] = await readLogs(server);
  if (row === undefined) throw new Error("no row");
  return row;
}

describe.each(MODELS)("%s (%s)", (model, dialect) => {
  describe("openai's client, chat completions", () => {
    const ask = (content: string) => ({ model, messages: [{ role: "user" as const, content }] });

    it("completes", async () => {
      const completion = await openAi().chat.completions.create(ask("hello"));
      expect(completion.object).toBe("chat.completion");
      expect(completion.choices[0]).toMatchObject({
        finish_reason: "stop",
        message: { role: "assistant", content: "Hi there, how are you today?" },
      });
      expect(completion.usage).toMatchObject({ prompt_tokens: 9, completion_tokens: 5, total_tokens: 14 });
      expect(await lastRow()).toMatchObject({
        client_dialect: "chat",
        provider_dialect: dialect === "openai" ? "chat" : dialect,
        model: model.slice(model.indexOf("/") + 1),
        tokens_in: 9,
        tokens_out: 5,
        success: true,
      });
    });

    it("streams, with usage when it asks", async () => {
      const stream = await openAi().chat.completions.create({
        ...ask("hello"),
        stream: true,
        stream_options: { include_usage: true },
      });
      let text = "";
      let usage: number | undefined;
      const reasons: string[] = [];
      for await (const chunk of stream) {
        text += chunk.choices[0]?.delta.content ?? "";
        const reason = chunk.choices[0]?.finish_reason;
        if (typeof reason === "string") reasons.push(reason);
        usage ??= chunk.usage?.total_tokens;
      }
      expect([text, reasons]).toEqual(["Hi there, how are you today?", ["stop"]]);
      expect(usage).toBe(14);
    });

    it("calls tools, complete and streamed, and returns their results", async () => {
      const tools = [
        { type: "function" as const, function: { name: "get_weather", parameters: { ...PARAMETERS } } },
      ];
      const request = { ...ask("weather"), tools, tool_choice: "required" as const };
      const first = await openAi().chat.completions.create(request);
      const message = first.choices[0]?.message;
      const call = message?.tool_calls?.[0];
      if (message === undefined || call?.type !== "function") throw new Error("no tool call");
      expect(first.choices[0]?.finish_reason).toBe("tool_calls");
      expect(JSON.parse(call.function.arguments)).toEqual({ city: "Paris", days: 2 });
      const streamed = await openAi().chat.completions.stream(request).finalChatCompletion();
      const again = streamed.choices[0]?.message.tool_calls?.[0];
      expect(again?.type === "function" && JSON.parse(again.function.arguments)).toEqual({
        city: "Paris",
        days: 2,
      });
      const second = await openAi().chat.completions.create({
        model,
        tools,
        messages: [
          { role: "user", content: "weather" },
          message,
          { role: "tool", tool_call_id: call.id, content: '{"degrees":21}' },
        ],
      });
      expect(second.choices[0]?.message.content).toBe("It is 21 degrees");
    });

    it("gets errors in its form", async () => {
      const error = await openAi()
        .chat.completions.create(ask("refuse"))
        .then(
          () => null,
          (cause: unknown) => cause,
        );
      expect(error).toBeInstanceOf(OpenAI.BadRequestError);
      expect((error as InstanceType<typeof OpenAI.BadRequestError>).message).toContain("too rude");
    });
  });

  describe("openai's client, responses", () => {
    it("completes and streams", async () => {
      const response = await openAi().responses.create({ model, input: "hello", store: false });
      expect([response.status, response.output_text]).toEqual(["completed", "Hi there, how are you today?"]);
      expect(response.usage).toMatchObject({ input_tokens: 9, output_tokens: 5 });
      const stream = openAi().responses.stream({ model, input: "hello", store: false });
      let text = "";
      stream.on("response.output_text.delta", ({ delta }) => (text += delta));
      const final = await stream.finalResponse();
      expect([text, final.output_text]).toEqual([response.output_text, response.output_text]);
    });

    it("calls tools and returns their results", async () => {
      const tools = [
        { type: "function" as const, name: "get_weather", parameters: { ...PARAMETERS }, strict: false },
      ];
      const first = await openAi().responses.create({ model, input: "weather", tools, store: false });
      const call = first.output.find((item) => item.type === "function_call");
      if (call === undefined) throw new Error("no tool call");
      expect(JSON.parse(call.arguments)).toEqual({ city: "Paris", days: 2 });
      const second = await openAi().responses.create({
        model,
        tools,
        store: false,
        input: [
          { role: "user", content: "weather" },
          ...first.output,
          { type: "function_call_output", call_id: call.call_id, output: '{"degrees":21}' },
        ] as OpenAI.Responses.ResponseInput,
      });
      expect(second.output_text).toBe("It is 21 degrees");
    });
  });

  describe("Anthropic's client", () => {
    const ask = (content: string) => ({
      model,
      max_tokens: 200,
      messages: [{ role: "user" as const, content }],
    });

    it("completes and streams", async () => {
      const message = await anthropic().messages.create(ask("hello"));
      expect(message).toMatchObject({
        type: "message",
        role: "assistant",
        stop_reason: "end_turn",
        content: [{ type: "text", text: "Hi there, how are you today?" }],
      });
      expect(message.usage).toMatchObject({ input_tokens: 9, output_tokens: 5 });
      const stream = anthropic().messages.stream(ask("hello"));
      let text = "";
      stream.on("text", (delta) => (text += delta));
      const final = await stream.finalMessage();
      expect(text).toBe("Hi there, how are you today?");
      expect(final.content).toMatchObject([{ type: "text", text }]);
      expect(final.usage.output_tokens).toBe(5);
    });

    it("calls tools, complete and streamed, and returns their results beside text", async () => {
      const tools = [{ name: "get_weather", input_schema: { ...PARAMETERS, required: ["city"] } }];
      const first = await anthropic().messages.create({ ...ask("weather"), tools });
      const call = first.content.find((block) => block.type === "tool_use");
      expect([first.stop_reason, call?.input]).toEqual(["tool_use", { city: "Paris", days: 2 }]);
      const streamed = await anthropic()
        .messages.stream({ ...ask("weather"), tools })
        .finalMessage();
      expect(streamed.content.find((block) => block.type === "tool_use")?.input).toEqual({
        city: "Paris",
        days: 2,
      });
      const second = await anthropic().messages.create({
        model,
        max_tokens: 200,
        tools,
        messages: [
          { role: "user", content: "weather" },
          { role: "assistant", content: first.content },
          {
            role: "user",
            content: [{ type: "tool_result", tool_use_id: call?.id ?? "", content: '{"degrees":21}' }],
          },
        ],
      });
      expect(second.content).toMatchObject([{ type: "text", text: "It is 21 degrees" }]);
    });

    it("gets errors in its form", async () => {
      const error = await anthropic()
        .messages.create(ask("refuse"))
        .then(
          () => null,
          (cause: unknown) => cause,
        );
      expect(error).toBeInstanceOf(Anthropic.BadRequestError);
      expect((error as InstanceType<typeof Anthropic.BadRequestError>).error).toMatchObject({
        type: "error",
        error: { type: "invalid_request_error", message: "too rude" },
      });
    });
  });
});
