/**
 * The responses door against the Open Responses specification: the cases of its compliance test, for providers of every dialect. Every
 * response and every event must have the members that the specification requires, with their types.
 */
import { LLMock } from "@copilotkit/aimock";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { z } from "zod";
import { send } from "../support/gateway.ts";
import { startTestServer, type TestServer } from "../support/test-server.ts";

const mock = new LLMock({ port: 0, strict: true });
let server: TestServer;

beforeAll(async () => {
  mock.onMessage("hello", { content: "Hello to you" });
  mock.onMessage("picture", { content: "A red heart" });
  mock.onMessage("my name", { content: "Alice" });
  mock.onMessage("weather", { toolCalls: [{ name: "get_weather", arguments: { location: "Oslo" } }] });
  await mock.start();
  server = await startTestServer({
    file: {
      providers: {
        groq: { baseUrl: `${mock.url}/v1`, dialects: ["chat"] },
        anthropic: { baseUrl: mock.url },
        "google-ai-studio": { baseUrl: mock.url },
      },
    },
  });
  await server.api("PUT", "/accounts/default/ai-gateway/gateways/default", { allow_anonymous_keys: true });
});
afterAll(async () => {
  await server.stop();
  await mock.stop();
});

const text = z.object({
  type: z.literal("output_text"),
  text: z.string(),
  annotations: z.array(z.unknown()),
  logprobs: z.array(z.unknown()).optional(),
});
const status = z.enum(["in_progress", "completed", "incomplete"]);
const item = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("message"),
    id: z.string(),
    role: z.literal("assistant"),
    status,
    content: z.array(text),
  }),
  z.object({
    type: z.literal("function_call"),
    id: z.string(),
    call_id: z.string(),
    name: z.string(),
    arguments: z.string(),
    status,
  }),
  z.object({ type: z.literal("reasoning"), id: z.string(), summary: z.array(z.unknown()) }),
]);
const response = z.object({
  id: z.string(),
  object: z.literal("response"),
  created_at: z.int(),
  completed_at: z.int().nullable(),
  status: z.string(),
  incomplete_details: z.object({ reason: z.string() }).nullable(),
  model: z.string(),
  previous_response_id: z.string().nullable(),
  instructions: z.string().nullable(),
  output: z.array(item),
  error: z.object({ code: z.string(), message: z.string() }).nullable(),
  tools: z.array(z.object({ type: z.string() })),
  tool_choice: z.union([z.string(), z.object({ type: z.string() })]),
  truncation: z.enum(["auto", "disabled"]),
  parallel_tool_calls: z.boolean(),
  text: z.object({ format: z.object({ type: z.string() }) }),
  top_p: z.number(),
  presence_penalty: z.number(),
  frequency_penalty: z.number(),
  top_logprobs: z.int(),
  temperature: z.number(),
  reasoning: z.object({}).nullable(),
  user: z.string().nullable(),
  usage: z
    .object({
      input_tokens: z.int(),
      input_tokens_details: z.object({ cached_tokens: z.int() }),
      output_tokens: z.int(),
      output_tokens_details: z.object({ reasoning_tokens: z.int() }),
      total_tokens: z.int(),
    })
    .nullable(),
  max_output_tokens: z.int().nullable(),
  max_tool_calls: z.int().nullable(),
  store: z.boolean(),
  background: z.boolean(),
  service_tier: z.string(),
  metadata: z.record(z.string(), z.string()),
  safety_identifier: z.string().nullable(),
  prompt_cache_key: z.string().nullable(),
});

const output_index = z.int();
const place = { item_id: z.string(), output_index };
const inText = { ...place, content_index: z.int() };
const EVENTS: Readonly<Record<string, z.ZodType>> = {
  "response.created": z.object({ response }),
  "response.in_progress": z.object({ response }),
  "response.completed": z.object({ response }),
  "response.output_item.added": z.object({ output_index, item }),
  "response.output_item.done": z.object({ output_index, item }),
  "response.content_part.added": z.object({ ...inText, part: text }),
  "response.content_part.done": z.object({ ...inText, part: text }),
  "response.output_text.delta": z.object({ ...inText, delta: z.string(), logprobs: z.array(z.unknown()) }),
  "response.output_text.done": z.object({ ...inText, text: z.string(), logprobs: z.array(z.unknown()) }),
  "response.function_call_arguments.delta": z.object({ ...place, delta: z.string() }),
  "response.function_call_arguments.done": z.object({ ...place, arguments: z.string() }),
};

const message = (role: string, content: unknown) => ({ type: "message", role, content });
const tools = [
  {
    type: "function",
    name: "get_weather",
    description: "The weather at a place",
    parameters: { type: "object", properties: { location: { type: "string" } }, required: ["location"] },
  },
];
const HEART =
  "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII=";

const CASES: readonly (readonly [name: string, body: object, type: string])[] = [
  ["a text", { input: [message("user", "Say hello")] }, "message"],
  ["a system prompt", { input: [message("system", "Be brief"), message("user", "Say hello")] }, "message"],
  ["a call of a tool", { input: [message("user", "How is the weather?")], tools }, "function_call"],
  [
    "an image",
    {
      input: [
        message("user", [
          { type: "input_text", text: "What is in the picture?" },
          { type: "input_image", image_url: HEART },
        ]),
      ],
    },
    "message",
  ],
  [
    "several turns",
    {
      input: [
        message("user", "I am Alice."),
        message("assistant", "Hello Alice."),
        message("user", "What is my name?"),
      ],
    },
    "message",
  ],
];

function ask(body: object) {
  return send(server, "POST", "/v1/responses", {
    body: JSON.stringify(body),
    headers: { "content-type": "application/json", authorization: "Bearer sk-any" },
  });
}

describe.each(["groq/llama-4", "anthropic/claude-sonnet-4-5", "google/gemini-2.5-flash"])("%s", (model) => {
  it.each(CASES)("answers %s", async (_, body, type) => {
    const answer = await ask({ model, ...body });
    expect([answer.status, answer.body]).toEqual([200, expect.any(String)]);
    const parsed = response.parse(JSON.parse(answer.body));
    expect(parsed.status).toBe("completed");
    expect(parsed.output.map((own) => own.type)).toContain(type);
  });

  it.each(CASES)("streams %s", async (_, body, type) => {
    const answer = await ask({ model, ...body, stream: true });
    const events = [...answer.body.matchAll(/^event: (.+)\ndata: (.+)$/gm)].map(
      ([, name = "", json = ""]) => {
        const data = JSON.parse(json) as { type: string; sequence_number: number };
        expect(data.type).toBe(name);
        EVENTS[name]?.parse(data);
        return data;
      },
    );
    const types = events.map((event) => event.type);
    expect(types.filter((name) => EVENTS[name] === undefined)).toEqual([]);
    expect(events.map((event) => event.sequence_number)).toEqual(events.map((_event, i) => i));
    expect([types[0], types.at(-1)]).toEqual(["response.created", "response.completed"]);
    const inside =
      type === "message"
        ? ["response.content_part.added", "response.output_text.delta", "response.output_text.done"]
        : ["response.function_call_arguments.delta", "response.function_call_arguments.done"];
    expect(types).toEqual(
      expect.arrayContaining(["response.output_item.added", ...inside, "response.output_item.done"]),
    );
    const { response: final } = z.object({ response }).parse(events.at(-1));
    expect([final.status, final.output.map((own) => own.type)]).toEqual([
      "completed",
      expect.arrayContaining([type]) as string[],
    ]);
  });
});
