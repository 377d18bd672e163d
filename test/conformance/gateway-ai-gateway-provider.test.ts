/**
 * Clients of the hosted original and of Gemini: `ai-gateway-provider`, which sends models of several providers as steps of the universal
 * endpoint and lets the model of the step that answered read the response; `@ai-sdk/google` and `@google/genai` on the provider's path.
 */
import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogle } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { LLMock } from "@copilotkit/aimock";
import { ApiError, GoogleGenAI, Type } from "@google/genai";
import { APICallError, generateText, type LanguageModel, stepCountIs, streamText, tool } from "ai";
import { AiGatewayDoesNotExist, AiGatewayUnauthorizedError, createAiGateway } from "ai-gateway-provider";
import { createUnified } from "ai-gateway-provider/providers/unified";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import {
  type ProviderAnswer,
  type ProviderPeer,
  sendEvents,
  sendJson,
  startProvider,
} from "../peers/provider.ts";
import { providerOfAll } from "../peers/troubled.ts";
import { readLogs } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const mock = new LLMock({ port: 0, strict: true });
let broken: ProviderPeer;
let google: ProviderPeer;
let server: TestServer;
let token: string;
const SLUGS = ["openai", "anthropic", "google-ai-studio", "groq", "mistral"];

beforeAll(async () => {
  mock.onMessage("hello", { content: "Hi there" });
  mock.on(
    { userMessage: "weather", hasToolResult: false },
    { toolCalls: [{ name: "get_weather", arguments: { city: "Paris" } }] },
  );
  mock.on({ userMessage: "weather", hasToolResult: true }, { content: "It is 21 degrees" });
  await mock.start();
  google = await startProvider(geminiWithTools);
  broken = await startProvider(providerOfAll({ kind: "error", status: 500 }));
  const at = { baseUrl: mock.url };
  server = await startTestServer({
    file: {
      providers: {
        openai: at,
        anthropic: at,
        "google-ai-studio": { baseUrl: google.url },
        groq: { baseUrl: `${mock.url}/v1` },
        mistral: { baseUrl: broken.url },
      },
    },
    environment: Object.fromEntries(SLUGS.map((slug) => [secretOf(slug), "sk-stored"])),
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { authentication: true });
  for (const slug of SLUGS) {
    await server.api("POST", "/accounts/default/ai-gateway/gateways/default/provider_configs", {
      provider_slug: slug,
      alias: "default",
      default_config: true,
      secret_id: secretOf(slug),
    });
  }
  token = await server.token(["gateway.run"]);
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
  await broken.close();
  await google.close();
});

function secretOf(slug: string): string {
  return `${slug.toUpperCase().replaceAll("-", "_")}_API_KEY`;
}

/** A function call for a question about the weather, text otherwise. */
const geminiWithTools: ProviderAnswer = async ({ url, body }, response) => {
  const wantsCall = body.includes("weather") && !body.includes('"functionResponse"');
  const part = body.includes('"functionResponse"') ? { text: "It is 21 degrees" } : { text: "Hi there" };
  const call = { functionCall: { name: "get_weather", args: { city: "Paris" } } };
  const answer = {
    candidates: [
      { index: 0, content: { role: "model", parts: [wantsCall ? call : part] }, finishReason: "STOP" },
    ],
    usageMetadata: { promptTokenCount: 9, candidatesTokenCount: 5, totalTokenCount: 14 },
  };
  if (url.includes("stream")) await sendEvents(response, [`data: ${JSON.stringify(answer)}\r\n\r\n`]);
  else sendJson(response, 200, answer);
};

const LIMITS = { maxRetries: 0, maxOutputTokens: 500 };

/** The package has a fixed host; its binding sends the same steps wherever it is told. */
function gateway(name = "default", key = token) {
  const binding = {
    run: (steps: unknown, { signal }: { signal?: AbortSignal } = {}) =>
      fetch(`${server.url}/v1/default/${name}`, {
        method: "POST",
        headers: { "content-type": "application/json", "cf-aig-authorization": `Bearer ${key}` },
        body: JSON.stringify(steps),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
  return createAiGateway({ binding, options: { metadata: { team: "red" } } });
}

// The package takes its own word for a key out, so that the stored key is used.
const NO_KEY = { apiKey: "CF_TEMP_TOKEN" };
const models = () => ({
  openai: createOpenAI(NO_KEY).responses("gpt-4o-mini"),
  chat: createOpenAI(NO_KEY).chat("gpt-4o-mini"),
  anthropic: createAnthropic(NO_KEY)("claude-sonnet-4-5"),
  google: createGoogle(NO_KEY)("gemini-2.5-flash"),
  unified: createUnified(NO_KEY)("anthropic/claude-sonnet-4-5"),
  down: createUnified(NO_KEY)("mistral/large"),
});

async function useWeather(model: LanguageModel): Promise<void> {
  const called: unknown[] = [];
  const { text } = await generateText({
    model,
    prompt: "weather",
    ...LIMITS,
    stopWhen: stepCountIs(3),
    tools: {
      get_weather: tool({
        description: "The weather of a city",
        inputSchema: z.object({ city: z.string() }),
        execute: (input) => {
          called.push(input);
          return { degrees: 21 };
        },
      }),
    },
  });
  expect([text, called]).toEqual(["It is 21 degrees", [{ city: "Paris" }]]);
}

describe("ai-gateway-provider", () => {
  it.each(["openai", "chat", "anthropic", "google", "unified"] as const)(
    "generates, streams and calls tools with a model of %s",
    async (name) => {
      const model = gateway()(models()[name]);
      expect((await generateText({ model, prompt: "hello", ...LIMITS })).text).toBe("Hi there");
      expect(await streamText({ model, prompt: "hello", ...LIMITS }).text).toBe("Hi there");
      await useWeather(model);
      expect((await readLogs(server))[0]).toMatchObject({ success: true, metadata: '{"team":"red"}' });
    },
  );

  it("lets the model of the step that answered read the response", async () => {
    const { down, anthropic, google } = models();
    for (const next of [anthropic, google]) {
      const model = gateway()([down, next]);
      expect((await generateText({ model, prompt: "hello", ...LIMITS })).text).toBe("Hi there");
      expect(await streamText({ model, prompt: "hello", ...LIMITS }).text).toBe("Hi there");
    }
    expect((await readLogs(server))[0]).toMatchObject({ provider: "google-ai-studio", step: 1 });
  });

  it("throws the errors that it has for the gateway's, and those of the SDK for a provider's", async () => {
    const ask = (model: LanguageModel) => generateText({ model, prompt: "hello", ...LIMITS });
    const { openai, down } = models();
    await expect(ask(gateway("default", "wrong")(openai))).rejects.toBeInstanceOf(AiGatewayUnauthorizedError);
    await expect(ask(gateway("nowhere")(openai))).rejects.toBeInstanceOf(AiGatewayDoesNotExist);
    const failure: unknown = await ask(gateway()(down)).catch((error: unknown) => error);
    expect(APICallError.isInstance(failure)).toBe(true);
    expect(failure).toMatchObject({ statusCode: 500, message: "The provider says 500" });
  });
});

describe("@ai-sdk/google", () => {
  const native = (path = "google-ai-studio") =>
    createGoogle({
      baseURL: `${server.url}/v1/default/default/${path}/v1beta`,
      apiKey: token,
    })("gemini-2.5-flash");

  it("generates, streams and calls tools on the provider's path", async () => {
    expect((await generateText({ model: native(), prompt: "hello", ...LIMITS })).text).toBe("Hi there");
    expect(await streamText({ model: native(), prompt: "hello", ...LIMITS }).text).toBe("Hi there");
    await useWeather(native());
    expect((await readLogs(server))[0]).toMatchObject({ provider: "google-ai-studio", success: true });
  });

  it("throws the SDK's error", async () => {
    const failure: unknown = await generateText({
      model: native("nowhere"),
      prompt: "hello",
      ...LIMITS,
    }).catch((error: unknown) => error);
    expect(APICallError.isInstance(failure)).toBe(true);
    expect(failure).toMatchObject({
      statusCode: 400,
      responseBody: expect.stringContaining("2008") as string,
    });
  });
});

describe("@google/genai", () => {
  const client = (slug = "google-ai-studio") =>
    new GoogleGenAI({
      apiKey: token,
      httpOptions: { baseUrl: `${server.url}/v1/default/default/${slug}` },
    });
  const model = "gemini-2.5-flash";

  it("calls tools, whole and streamed, with a token in the place of its key", async () => {
    const config = {
      tools: [
        {
          functionDeclarations: [
            {
              name: "get_weather",
              parameters: { type: Type.OBJECT, properties: { city: { type: Type.STRING } } },
            },
          ],
        },
      ],
    };
    const first = await client().models.generateContent({ model, contents: "weather", config });
    expect(first.functionCalls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
    const calls: unknown[] = [];
    for await (const chunk of await client().models.generateContentStream({
      model,
      contents: "weather",
      config,
    }))
      calls.push(...(chunk.functionCalls ?? []));
    expect(calls).toMatchObject([{ name: "get_weather", args: { city: "Paris" } }]);
    const second = await client().models.generateContent({
      model,
      config,
      contents: [
        { role: "user", parts: [{ text: "weather" }] },
        { role: "model", parts: [{ functionCall: { name: "get_weather", args: { city: "Paris" } } }] },
        { role: "user", parts: [{ functionResponse: { name: "get_weather", response: { degrees: 21 } } }] },
      ],
    });
    expect(second.text).toBe("It is 21 degrees");
  });

  it("throws its own error for a refusal, and does not take a broken stream for a whole one", async () => {
    const ask = (slug: string) => client(slug).models.generateContent({ model, contents: "hello" });
    const failure: unknown = await ask("nowhere").catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(ApiError);
    expect(failure).toMatchObject({ status: 400, message: expect.stringContaining("2008") as string });
    google.answer = providerOfAll({ kind: "error", status: 400 });
    const refused: unknown = await ask("google-ai-studio").catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(ApiError);
    expect(refused).toMatchObject({
      status: 400,
      message: expect.stringContaining("The provider says 400") as string,
    });
    for (const kind of ["cut", "late"] as const) {
      google.answer = providerOfAll({ kind });
      const read = async () => {
        for await (const chunk of await client().models.generateContentStream({ model, contents: "hello" }))
          void chunk;
      };
      await expect(read()).rejects.toThrow(kind === "cut" ? /broke off|terminated/ : /gave up/);
    }
    google.answer = geminiWithTools;
  });
});
