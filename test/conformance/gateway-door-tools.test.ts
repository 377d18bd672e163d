/** Structured output and parallel calls of tools, whole and streamed, by real clients through each door to providers of every dialect. */
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { LLMock } from "@copilotkit/aimock";
import { generateText, type LanguageModel, Output, streamText, tool } from "ai";
import OpenAI from "openai";
import OpenAI6 from "openai-6";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const mock = new LLMock({ port: 0, strict: true });
let server: TestServer;
let base: string;
const KEY = "sk-any";

const CITY = { name: "Paris", inhabitants: 2_100_000 };
const City = z.object({ name: z.string(), inhabitants: z.number() });
const CALLS = [
  { name: "get_weather", arguments: { city: "Paris" } },
  { name: "get_time", arguments: { city: "Tokyo" } },
  { name: "get_weather", arguments: { city: "Lima" } },
];

beforeAll(async () => {
  mock.onMessage("city", { content: JSON.stringify(CITY) });
  mock.on({ userMessage: "compare", hasToolResult: false }, { toolCalls: CALLS });
  mock.on({ userMessage: "compare", hasToolResult: true }, { content: "Compared" });
  mock.onMessage("sum up", { content: "Compared" });
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
  });
  base = `${server.url}/v1`;
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

const openAi = () => new OpenAI({ baseURL: base, apiKey: KEY, maxRetries: 0 });
const messages = (content: string) => [{ role: "user" as const, content }];
const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };
const NAMES = ["get_weather", "get_time"];
const chatTools = NAMES.map((name) => ({ type: "function" as const, function: { name, parameters } }));
const responseTools = NAMES.map((name) => ({ type: "function" as const, name, parameters, strict: false }));
const blockTools = NAMES.map((name) => ({ name, input_schema: { ...parameters, type: "object" as const } }));

describe.each([
  "openai/gpt-4o-mini",
  "groq/llama-4",
  "anthropic/claude-sonnet-4-5",
  "google/gemini-2.5-flash",
])("%s", (model) => {
  it.each([
    ["7", OpenAI],
    ["6", OpenAI6],
  ])("openai %s parses structured output of chats and responses, whole and streamed", async (_, Client) => {
    const client = new Client({ baseURL: base, apiKey: KEY, maxRetries: 0 }) as OpenAI;
    const chat = {
      model,
      messages: messages("city"),
      response_format: zodResponseFormat(City, "city"),
    };
    const completion = await client.chat.completions.parse(chat);
    expect(completion.choices[0]?.message.parsed).toEqual(CITY);
    const streamed = await client.chat.completions.stream(chat).finalChatCompletion();
    expect(streamed.choices[0]?.message.parsed).toEqual(CITY);
    const request = { model, input: "city", text: { format: zodTextFormat(City, "city") } };
    expect((await client.responses.parse(request)).output_parsed).toEqual(CITY);
    expect((await client.responses.stream(request).finalResponse()).output_parsed).toEqual(CITY);
  });

  it("a chat stream has parallel calls in order, and takes their results", async () => {
    const request = { model, messages: messages("compare"), tools: chatTools };
    const final = await openAi().chat.completions.stream(request).finalChatCompletion();
    const [choice] = final.choices;
    const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
      call.type === "function" ? [call] : [],
    );
    expect(choice?.finish_reason).toBe("tool_calls");
    expect(calls.map(toCall)).toEqual(CALLS);
    expect(new Set(calls.map(({ id }) => id)).size).toBe(CALLS.length);
    const results = calls.map(({ id }) => ({ role: "tool" as const, tool_call_id: id, content: "20" }));
    const answer = await openAi().chat.completions.create({
      ...request,
      messages: [...messages("compare"), { role: "assistant", content: null, tool_calls: calls }, ...results],
    });
    expect(answer.choices[0]?.message.content).toBe("Compared");
  });

  it("a response stream has parallel calls in order, and takes their results", async () => {
    const request = { model, tools: responseTools, store: false };
    const { output } = await openAi()
      .responses.stream({ ...request, input: "compare" })
      .finalResponse();
    const calls = output.flatMap((item) => (item.type === "function_call" ? [item] : []));
    expect(calls.map((call) => toCall({ function: call }))).toEqual(CALLS);
    const results = calls.map(({ call_id }) => ({
      type: "function_call_output" as const,
      call_id,
      output: "20",
    }));
    const answer = await openAi().responses.create({
      ...request,
      input: [...messages("compare"), ...output, ...results] as OpenAI.Responses.ResponseInput,
    });
    expect(answer.output_text).toBe("Compared");
  });

  it("a message stream has parallel calls in order, and takes their results", async () => {
    const client = new Anthropic({ baseURL: server.url, apiKey: KEY, maxRetries: 0 });
    const request = { model, max_tokens: 200, tools: blockTools };
    const final = await client.messages.stream({ ...request, messages: messages("compare") }).finalMessage();
    const calls = final.content.flatMap((block) => (block.type === "tool_use" ? [block] : []));
    expect(final.stop_reason).toBe("tool_use");
    expect(calls.map(({ name, input }) => ({ name, arguments: input }))).toEqual(CALLS);
    const results = calls.map(({ id }) => ({
      type: "tool_result" as const,
      tool_use_id: id,
      content: "20",
    }));
    const answer = await client.messages.create({
      ...request,
      messages: [
        ...messages("compare"),
        { role: "assistant", content: final.content },
        { role: "user", content: [...results, { type: "text", text: "sum up" }] },
      ],
    });
    expect(answer.content).toMatchObject([{ type: "text", text: "Compared" }]);
  });

  it.each<readonly [string, () => LanguageModel]>([
    ["OpenAI, chat", () => createOpenAI({ baseURL: base, apiKey: KEY }).chat(model)],
    ["OpenAI, responses", () => createOpenAI({ baseURL: base, apiKey: KEY }).responses(model)],
    ["Anthropic", () => createAnthropic({ baseURL: base, apiKey: KEY })(model)],
    [
      "OpenAI-compatible",
      () =>
        createOpenAICompatible({
          name: "door",
          baseURL: base,
          apiKey: KEY,
          supportsStructuredOutputs: true,
        })(model),
    ],
    [
      "Open Responses",
      () => createOpenResponses({ name: "door", url: `${base}/responses`, apiKey: KEY })(model),
    ],
  ])("the AI SDK's provider %s gets objects and parallel calls", async (_, create) => {
    const limits = { maxRetries: 0, maxOutputTokens: 500 };
    const { output } = await generateText({
      model: create(),
      prompt: "city",
      output: Output.object({ schema: City }),
      ...limits,
    });
    expect(output).toEqual(CITY);
    const inputSchema = z.object({ city: z.string() });
    const stream = streamText({
      model: create(),
      prompt: "compare",
      tools: { get_weather: tool({ inputSchema }), get_time: tool({ inputSchema }) },
      ...limits,
    });
    const calls = await stream.toolCalls;
    expect(calls.map(({ toolName, input }) => ({ name: toolName, arguments: input }))).toEqual(CALLS);
  });
});

function toCall({
  function: { name, arguments: text },
}: {
  readonly function: { readonly name: string; readonly arguments: string };
}): unknown {
  return { name, arguments: JSON.parse(text) as unknown };
}
