/**
 * Errors, and streams that break off or begin late, as clients of the unified doors see them: whatever the dialect of the provider, each
 * client throws an error of its own type with the message of the provider or of the gateway.
 */
import Anthropic from "@anthropic-ai/sdk";
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenResponses } from "@ai-sdk/open-responses";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { ChatOpenAI } from "@langchain/openai";
import {
  Agent,
  type Model,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
} from "@openai/agents";
import { APICallError, generateText, type LanguageModel, streamText } from "ai";
import OpenAI from "openai";
import OpenAI6 from "openai-6";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { providerOfAll, type Trouble } from "../peers/troubled.ts";
import { type ProviderPeer, startProvider } from "../peers/provider.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

let peer: ProviderPeer;
let server: TestServer;
let base: string;
const KEY = "sk-any";

beforeAll(async () => {
  setTracingDisabled(true);
  peer = await startProvider(providerOfAll({ kind: "error", status: 500 }));
  const at = { baseUrl: peer.url };
  server = await startTestServer({
    file: {
      providers: {
        groq: { baseUrl: `${peer.url}/v1`, dialects: ["chat"] },
        anthropic: at,
        "google-ai-studio": at,
        openai: at,
      },
    },
  });
  base = `${server.url}/v1`;
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
});
afterAll(async () => {
  await server.stop();
  await peer.close();
});

const meet = (trouble: Trouble) => void (peer.answer = providerOfAll(trouble));

interface Client {
  readonly name: string;
  readonly whole: (model: string) => Promise<unknown>;
  readonly streamed: (model: string) => Promise<unknown>;
  readonly isOwnError: (error: unknown) => boolean;
}

const messages = [{ role: "user" as const, content: "Hello" }];

async function drain(events: AsyncIterable<unknown>): Promise<void> {
  for await (const event of events) void event;
}

function openAiClients(version: string, Client: typeof OpenAI | typeof OpenAI6): Client[] {
  const client = () => new Client({ baseURL: base, apiKey: KEY, maxRetries: 0 }) as OpenAI;
  return [
    {
      name: `openai ${version}, chat`,
      whole: (model) => client().chat.completions.create({ model, messages }),
      streamed: async (model) =>
        drain(await client().chat.completions.create({ model, messages, stream: true })),
      isOwnError: (error) => error instanceof Client.APIError,
    },
    {
      name: `openai ${version}, responses`,
      whole: (model) => client().responses.create({ model, input: "Hello", store: false }),
      streamed: async (model) =>
        drain(await client().responses.create({ model, input: "Hello", store: false, stream: true })),
      isOwnError: (error) => error instanceof Client.APIError,
    },
  ];
}

function aiClient(name: string, create: (model: string) => LanguageModel): Client {
  const limits = { prompt: "Hello", maxRetries: 0, maxOutputTokens: 50 };
  return {
    name: `ai, ${name}`,
    whole: (model) => generateText({ model: create(model), ...limits }),
    streamed: async (model) => {
      let failure: unknown;
      const { fullStream } = streamText({
        model: create(model),
        ...limits,
        onError: ({ error }) => void (failure ??= error),
      });
      // The error is reported first; then the broken connection ends the stream.
      await drain(fullStream).catch((error: unknown) => (failure ??= error));
      throw failure;
    },
    isOwnError: (error) => APICallError.isInstance(error),
  };
}

function agentsClient(name: string, create: (model: string) => Model): Client {
  const agent = (model: string) => new Agent({ name: "helper", model: create(model) });
  return {
    name: `@openai/agents, ${name}`,
    whole: (model) => run(agent(model), "Hello"),
    streamed: async (model) => {
      const result = await run(agent(model), "Hello", { stream: true });
      await drain(result);
      await result.completed;
    },
    isOwnError: (error) => error instanceof OpenAI.APIError,
  };
}

const CLIENTS: readonly Client[] = [
  ...openAiClients("7", OpenAI),
  ...openAiClients("6", OpenAI6),
  {
    name: "@anthropic-ai/sdk",
    whole: (model) => anthropic().messages.create({ model, max_tokens: 50, messages }),
    streamed: (model) => anthropic().messages.stream({ model, max_tokens: 50, messages }).finalMessage(),
    isOwnError: (error) => error instanceof Anthropic.APIError,
  },
  aiClient("OpenAI chat", (model) => createOpenAI({ baseURL: base, apiKey: KEY }).chat(model)),
  aiClient("OpenAI responses", (model) => createOpenAI({ baseURL: base, apiKey: KEY }).responses(model)),
  aiClient("Anthropic", (model) => createAnthropic({ baseURL: base, apiKey: KEY })(model)),
  aiClient("OpenAI-compatible", (model) =>
    createOpenAICompatible({ name: "door", baseURL: base, apiKey: KEY })(model),
  ),
  aiClient("Open Responses", (model) =>
    createOpenResponses({ name: "door", url: `${base}/responses`, apiKey: KEY })(model),
  ),
  agentsClient("chat", (model) => new OpenAIChatCompletionsModel(openAi(), model)),
  agentsClient("responses", (model) => new OpenAIResponsesModel(openAi(), model)),
  {
    name: "@langchain/openai",
    whole: (model) => langchain(model).invoke("Hello"),
    streamed: async (model) => drain(await langchain(model).stream("Hello")),
    isOwnError: (error) => error instanceof OpenAI.APIError,
  },
];

const openAi = () => new OpenAI({ baseURL: base, apiKey: KEY, maxRetries: 0 });
const anthropic = () => new Anthropic({ baseURL: server.url, apiKey: KEY, maxRetries: 0 });
const langchain = (model: string) =>
  new ChatOpenAI({ model, apiKey: KEY, maxRetries: 0, configuration: { baseURL: base } });

const MODELS = [
  "groq/llama-4",
  "anthropic/claude-sonnet-4-5",
  "google/gemini-2.5-flash",
  "openai/gpt-4o-mini",
];

async function failureOf(call: Promise<unknown>): Promise<Error> {
  const failure = await call.then(
    () => null,
    (error: unknown) => error,
  );
  if (!(failure instanceof Error)) throw new Error(`not an error: ${JSON.stringify(failure)}`);
  return failure;
}

/** The Open Responses provider does not read an error whose `param` is null, as OpenAI's are, and shows its body only. */
function textOf(error: Error): string {
  return APICallError.isInstance(error) ? error.message + (error.responseBody ?? "") : error.message;
}

function statusOf(error: Error): unknown {
  return "status" in error ? error.status : "statusCode" in error ? error.statusCode : undefined;
}

describe.each(CLIENTS)("$name", ({ whole, streamed, isOwnError }) => {
  it.each(MODELS)("throws its own error when the provider of %s refuses", async (model) => {
    for (const [status, call] of [
      [400, whole],
      [429, streamed],
      [500, whole],
    ] as const) {
      meet({ kind: "error", status });
      const error = await failureOf(call(model));
      expect([isOwnError(error), statusOf(error)]).toEqual([true, status]);
      expect(textOf(error)).toContain(`The provider says ${status}`);
    }
  });

  it("throws its own error when the gateway refuses", async () => {
    for (const call of [whole, streamed]) {
      const error = await failureOf(call("nowhere/model"));
      expect([isOwnError(error), statusOf(error)]).toEqual([true, 400]);
      expect(textOf(error)).toContain("nowhere");
    }
  });

  it.each(MODELS)("throws when the stream of %s breaks off", async (model) => {
    meet({ kind: "cut" });
    expect((await failureOf(streamed(model))).message).toMatch(/broke off/);
  });

  it.each(MODELS)("throws when the stream of %s ends with an error", async (model) => {
    meet({ kind: "late" });
    expect((await failureOf(streamed(model))).message).toMatch(/The provider gave up/);
  });
});

describe("a stream whose provider thinks", () => {
  /** The head at once, and the rest when the client has begun to read. */
  const think = () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const chunk = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    peer.answer = async (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.flushHeaders();
      await promise;
      response.end(
        `${chunk({ role: "assistant", content: "Hi" }, null)}${chunk({}, "stop")}data: [DONE]\n\n`,
      );
    };
    return resolve;
  };

  it.each([
    ["/v1/messages", { max_tokens: 9, messages }, "event: message_start", "message_stop"],
    ["/v1/responses", { input: "x" }, "event: response.created", "response.completed"],
  ])("begins at once: %s", async (path, body, first, last) => {
    const go = think();
    const response = await fetch(server.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${KEY}` },
      body: JSON.stringify({ model: "groq/llama-4", stream: true, ...body }),
    });
    let text = "";
    for await (const chunk of response.body ?? []) {
      if (text === "") {
        expect(Buffer.from(chunk).toString()).toMatch(first);
        go();
      }
      text += Buffer.from(chunk).toString();
    }
    expect(text.split(first)).toHaveLength(2);
    expect(text).toContain(last);
  });
});
