/** Frameworks and further clients through the unified doors to providers of other dialects, which aimock plays. */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { LLMock } from "@copilotkit/aimock";
import { ChatOpenAI } from "@langchain/openai";
import {
  Agent,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from "@openai/agents";
import { generateText, type LanguageModel, stepCountIs, streamText, tool as aiTool } from "ai";
import OpenAI from "openai";
import OpenAI6 from "openai-6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const mock = new LLMock({ port: 0, strict: true });
let server: TestServer;
let token: string;

beforeAll(async () => {
  setTracingDisabled(true);
  mock.onMessage("hello", { content: "Hi there" });
  mock.on(
    { userMessage: "weather", hasToolResult: false },
    { toolCalls: [{ name: "get_weather", arguments: { city: "Paris" } }] },
  );
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "It is 21 degrees" });
  await mock.start();
  server = await startTestServer({
    file: {
      providers: {
        groq: { baseUrl: `${mock.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: mock.url },
        "google-ai-studio": { baseUrl: mock.url },
      },
    },
    environment: { GROQ_API_KEY: "gsk", ANTHROPIC_API_KEY: "sk-ant", GOOGLE_AI_STUDIO_API_KEY: "goog" },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
  for (const slug of ["groq", "anthropic", "google-ai-studio"]) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: `${slug.toUpperCase().replaceAll("-", "_")}_API_KEY`,
    });
  }
  token = await server.token(["gateway.run"]);
});

afterAll(async () => {
  await server.stop();
  await mock.stop();
});

const LIMITS = { maxRetries: 0, maxOutputTokens: 500 };
const MODELS = ["groq/llama-4", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-flash"];

describe.each(MODELS)("%s", (model) => {
  const clients: readonly (readonly [name: string, create: () => LanguageModel])[] = [
    ["OpenAI, chat", () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: token }).chat(model)],
    [
      "OpenAI, responses",
      () => createOpenAI({ baseURL: `${server.url}/v1`, apiKey: token }).responses(model),
    ],
    ["Anthropic", () => createAnthropic({ baseURL: `${server.url}/v1`, apiKey: token })(model)],
    [
      "OpenAI-compatible",
      () => createOpenAICompatible({ name: "door", baseURL: `${server.url}/v1`, apiKey: token })(model),
    ],
    [
      "Open Responses",
      () => createOpenResponses({ name: "door", url: `${server.url}/v1/responses`, apiKey: token })(model),
    ],
  ];

  it.each(clients)("the AI SDK's provider %s generates, streams and calls tools", async (_, create) => {
    const { text } = await generateText({ model: create(), prompt: "hello", ...LIMITS });
    expect(text).toBe("Hi there");
    const stream = streamText({ model: create(), prompt: "hello", ...LIMITS });
    expect(await stream.text).toBe("Hi there");
    const called: unknown[] = [];
    const answer = await generateText({
      model: create(),
      prompt: "weather",
      ...LIMITS,
      stopWhen: stepCountIs(3),
      tools: {
        get_weather: aiTool({
          description: "The weather of a city",
          inputSchema: z.object({ city: z.string() }),
          execute: (input) => {
            called.push(input);
            return { degrees: 21 };
          },
        }),
      },
    });
    expect([answer.text, called]).toEqual(["It is 21 degrees", [{ city: "Paris" }]]);
  });

  it("OpenAI's Agents SDK runs a tool, by chat completions and by responses", async () => {
    const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: token, maxRetries: 0 });
    for (const own of [
      new OpenAIChatCompletionsModel(client, model),
      new OpenAIResponsesModel(client, model),
    ]) {
      const agent = new Agent({
        name: "weather",
        model: own,
        tools: [
          tool({
            name: "get_weather",
            description: "The weather of a city",
            parameters: z.object({ city: z.string() }),
            execute: ({ city }) => `21 degrees in ${city}`,
          }),
        ],
      });
      expect((await run(agent, "weather")).finalOutput).toBe("It is 21 degrees");
    }
  });

  it.each([false, true])(
    "a later request refers to items and answers by their ids, with stream: %s",
    async (stream) => {
      const client = new OpenAI({ baseURL: `${server.url}/v1`, apiKey: token, maxRetries: 0 });
      const parameters = {
        type: "object",
        properties: { city: { type: "string" } },
        additionalProperties: false,
      };
      const tools = [{ type: "function" as const, name: "get_weather", parameters, strict: false }];
      const first = await (stream
        ? client.responses.stream({ model, input: "weather", tools }).finalResponse()
        : client.responses.create({ model, input: "weather", tools }));
      const call = first.output.find((item) => item.type === "function_call");
      if (call?.type !== "function_call" || call.id === undefined) throw new Error("no call");
      const output = { type: "function_call_output" as const, call_id: call.call_id, output: "21" };
      const input = [
        { role: "user" as const, content: "weather" },
        { type: "item_reference" as const, id: call.id },
        output,
      ];
      const byItem = await client.responses.create({ model, input, tools });
      expect(byItem.output_text).toBe("It is 21 degrees");
      const byAnswer = await client.responses.create({
        model,
        input: [output],
        previous_response_id: first.id,
        tools,
      });
      expect(byAnswer.output_text).toBe("It is 21 degrees");
      // Of another caller.
      const other = new OpenAI({
        baseURL: `${server.url}/v1`,
        apiKey: await server.token(["gateway.run"]),
        maxRetries: 0,
      });
      await expect(other.responses.create({ model, input, tools })).rejects.toMatchObject({
        status: 400,
        message: expect.stringContaining(`Item with id '${call.id}' not found`) as string,
      });
    },
  );

  it("LangChain invokes and streams", async () => {
    const chat = new ChatOpenAI({
      model,
      apiKey: token,
      maxRetries: 0,
      configuration: { baseURL: `${server.url}/v1` },
    });
    expect((await chat.invoke("hello")).text).toBe("Hi there");
    let text = "";
    for await (const chunk of await chat.stream("hello")) text += chunk.text;
    expect(text).toBe("Hi there");
  });

  it("the previous version of OpenAI's client completes, streams and responds", async () => {
    const client = new OpenAI6({ baseURL: `${server.url}/v1`, apiKey: token, maxRetries: 0 });
    const messages = [{ role: "user" as const, content: "hello" }];
    const completion = await client.chat.completions.create({ model, messages });
    expect(completion.choices[0]?.message.content).toBe("Hi there");
    const streamed = await client.chat.completions.stream({ model, messages }).finalContent();
    expect(streamed).toBe("Hi there");
    const response = await client.responses.create({ model, input: "hello", store: false });
    expect(response.output_text).toBe("Hi there");
  });
});
