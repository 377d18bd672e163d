import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { readTailUsage, readUsage, scanUsage } from "./read-usage.ts";

const usage = fc.oneof(
  fc.record({ prompt_tokens: fc.nat(), completion_tokens: fc.nat() }),
  fc.record({ input_tokens: fc.nat(), output_tokens: fc.nat(), note: fc.string({ unit: "grapheme" }) }),
  fc.record({ unknown: fc.nat() }),
  fc.constant(null),
);
const text = fc.oneof(
  fc.string({ unit: "grapheme" }),
  fc.constantFrom('"usage":{"prompt_tokens":9}', '\\"usage\\":{}', "}}]", '"', "\\", "usage"),
);
const keys = fc.constantFrom(
  "usage",
  "usageMetadata",
  "message",
  "response",
  "choices",
  "model",
  "type",
  "x",
);
const { body } = fc.letrec((tie) => ({
  body: fc
    .array(fc.tuple(keys, tie("value")), { maxLength: 5 })
    .map((entries) => Object.fromEntries(entries)),
  value: fc.oneof(
    { maxDepth: 3 },
    usage,
    text,
    fc.nat(),
    fc.array(tie("value"), { maxLength: 3 }),
    tie("body"),
  ),
}));

it("returns null or the result of parsing the whole body", () => {
  let found = 0;
  fc.assert(
    fc.property(body, fc.constantFrom(undefined, 1, "\t"), (value, space) => {
      const tail = readTailUsage(Buffer.from(JSON.stringify(value, null, space)));
      if (tail === null) return;
      found += 1;
      expect(tail).toEqual(readUsage(value).usage);
    }),
    { numRuns: 4000 },
  );
  expect(found).toBeGreaterThan(20);
});

it.each([
  [
    "OpenAI chat",
    '{"choices":[{"message":{"content":"hi"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"x":{"y":[1]}},"service_tier":"default"}',
  ],
  [
    "pretty-printed",
    '{\n  "content": "say \\"usage\\"",\n  "usage" : {\n    "input_tokens": 3,\n    "output_tokens": 4\n  }\n}\n',
  ],
])("finds the usage of %s without parsing the rest", (_, json) => {
  expect(readTailUsage(Buffer.from(json))).toMatchObject({ tokensIn: 3, tokensOut: 4 });
});

it.each([
  ["usage inside another member", '{"message":{"usage":{"input_tokens":3,"output_tokens":4}}}'],
  ["usage in an array", '[{"usage":{"prompt_tokens":3}}]'],
  ["a body that broke off", '{"choices":[],"usage":{"prompt_tokens":3},"a":"'],
  ["two bodies", '{"usage":{"prompt_tokens":3}}{"a":1}'],
  ["the word as a value", '{"usage":{"prompt_tokens":3},"type":"usage"}'],
])("leaves %s to the parser", (_, json) => {
  expect(readTailUsage(Buffer.from(json))).toBeNull();
});

it.each([
  [
    "Anthropic's writes for an hour, searches and tier",
    {
      usage: {
        input_tokens: 1,
        output_tokens: 2,
        cache_creation_input_tokens: 100,
        cache_creation: { ephemeral_5m_input_tokens: 60, ephemeral_1h_input_tokens: 40 },
        server_tool_use: { web_search_requests: 3 },
        service_tier: "batch",
      },
    },
    { tokensIn: 101, tokensInCacheWrite: 100, tokensInCacheWrite1h: 40, searches: 3, tier: "batch" },
  ],
  [
    "OpenAI's audio, and its tier beside the usage",
    {
      usage: {
        prompt_tokens: 10,
        completion_tokens: 20,
        prompt_tokens_details: { audio_tokens: 4 },
        completion_tokens_details: { audio_tokens: 5 },
      },
      service_tier: "flex",
    },
    { tokensInAudio: 4, tokensOutAudio: 5, tier: "flex" },
  ],
  [
    "the tier of Bedrock's Converse",
    {
      usage: { inputTokens: 1, outputTokens: 2 },
      serviceTier: { type: "priority" },
      performanceConfig: { latency: "optimized" },
    },
    { tokensIn: 1, tier: "priority+latency:optimized" },
  ],
  [
    "the usual tier of Bedrock's Converse",
    {
      usage: { inputTokens: 1, outputTokens: 2 },
      serviceTier: { type: "default" },
      performanceConfig: { latency: "standard" },
    },
    { tokensIn: 1, tier: "" },
  ],
  [
    "Gemini's modalities",
    {
      usageMetadata: {
        promptTokenCount: 30,
        candidatesTokenCount: 9,
        promptTokensDetails: [
          { modality: "TEXT", tokenCount: 5 },
          { modality: "AUDIO", tokenCount: 25 },
        ],
        candidatesTokensDetails: [{ modality: "IMAGE", tokenCount: 9 }],
      },
    },
    { tokensInAudio: 25, tokensOutImage: 9 },
  ],
  [
    "OpenRouter's cost, with the caller's own key",
    {
      usage: {
        prompt_tokens: 1,
        completion_tokens: 1,
        cost: 0.25,
        is_byok: true,
        cost_details: { upstream_inference_cost: 0.5 },
      },
    },
    { reportedCost: 0.75 },
  ],
  [
    "Perplexity's cost and searches",
    { usage: { prompt_tokens: 1, completion_tokens: 1, num_search_queries: 2, cost: { total_cost: 0.005 } } },
    { reportedCost: 0.005, searches: 2 },
  ],
  [
    "xAI's cost in ticks",
    { usage: { prompt_tokens: 1, completion_tokens: 1, cost_in_usd_ticks: 20_000_000_000 } },
    { reportedCost: 2 },
  ],
])("reads %s, whole and from the tail", (_, body, expected) => {
  expect(readUsage(body).usage).toMatchObject(expected);
  const tail = readTailUsage(Buffer.from(JSON.stringify(body)));
  if (tail !== null) expect(tail).toMatchObject(expected);
});

it.each([
  ["OpenAI's", { text: "Hi", duration: 2.5 }],
  ["Deepgram's", { metadata: { duration: 2.5, channels: 1 }, results: { channels: [] } }],
  ["ElevenLabs'", { language_code: "en", text: "Hi", words: [{ text: "Hi", start: 0, end: 2.5 }] }],
])("reads the seconds of a transcription: %s", (_, body) => {
  expect(readUsage(body).usage).toMatchObject({ seconds: 2.5, tokensIn: 0 });
});

describe("tools that the provider ran", () => {
  const usage = { input_tokens: 10, output_tokens: 5 };
  const ran = (type: string, more: object = {}) => ({ type, ...more });
  const code = (container: unknown) => ({ type: "code_interpreter", container });
  const toolsOf = (body: object) => readUsage(body).usage?.tools;

  it.each([
    [
      "one container of two calls",
      [
        ran("code_interpreter_call", { container_id: "a" }),
        ran("code_interpreter_call", { container_id: "a" }),
      ],
      { type: "auto" },
      1,
    ],
    [
      "two containers",
      [
        ran("code_interpreter_call", { container_id: "a" }),
        ran("code_interpreter_call", { container_id: "b" }),
      ],
      { type: "auto" },
      2,
    ],
    [
      "a large container",
      [ran("code_interpreter_call", { container_id: "a" })],
      { type: "auto", memory_limit: "16g" },
      16,
    ],
    [
      "a shell in a container",
      [ran("shell_call", { environment: { type: "container_reference", container_id: "a" } })],
      undefined,
      1,
    ],
  ])("are sessions of %s", (_, output, container, sessions) => {
    expect(toolsOf({ output, tools: [code(container)], usage })).toMatchObject({
      sessions,
      isUnpriced: false,
    });
  });

  it.each([
    [
      "code in a container of the client's, whose size is not stated",
      ran("code_interpreter_call", { container_id: "a" }),
      [code("cntr_1")],
    ],
    [
      "a picture without the usage of its model",
      ran("image_generation_call"),
      [{ type: "image_generation", model: "gpt-image-1" }],
    ],
    ["a tool of tomorrow", ran("time_travel_call"), []],
  ])("have no known price: %s", (_, item, tools) => {
    expect(toolsOf({ output: [item], tools, usage })).toMatchObject({ isUnpriced: true });
  });

  it.each(["function_call", "mcp_call", "web_search_call", "local_shell_call", "message"])(
    "are none for an item %s",
    (type) => expect(toolsOf({ output: [ran(type)], usage })).toBeNull(),
  );

  it("have the usage of the model that made a picture, also in an answer that is too long to parse", () => {
    const body = {
      output: [ran("image_generation_call", { result: "A".repeat(2_000_000) }), ran("web_search_call")],
      tools: [
        { type: "image_generation", model: "gpt-image-1", input_image_mask: null },
        { type: "web_search" },
      ],
      tool_usage: {
        image_gen: { input_tokens: 3, output_tokens: 272, output_tokens_details: { image_tokens: 272 } },
        web_search: { num_requests: 1 },
      },
      usage,
    };
    const rounds = [{ model: "gpt-image-1", usage: { tokensIn: 3, tokensOut: 272, tokensOutImage: 272 } }];
    expect(readUsage(body).usage).toMatchObject({
      tokensOut: 5,
      searches: 1,
      tools: { rounds, isUnpriced: false },
    });
    const json = JSON.stringify(body);
    const end = Buffer.from(json.slice(-60_000));
    expect(scanUsage(end).usage).toMatchObject({
      tokensOut: 5,
      searches: 1,
      tools: { rounds, isUnpriced: false },
    });
    const uncounted = Buffer.from(json.slice(-60_000).replace("tool_usage", "other"));
    expect(scanUsage(uncounted).usage?.tools).toMatchObject({ isUnpriced: true });
  });

  it("are maps of an answer of Gemini", () => {
    const grounded = (chunk: object) =>
      toolsOf({
        candidates: [{ groundingMetadata: { groundingChunks: [chunk, chunk] } }],
        usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 },
      });
    expect(grounded({ maps: { uri: "https://maps.google.com/?cid=1" } })).toMatchObject({ maps: 1 });
    expect(grounded({ web: { uri: "https://example.com" } })).toBeNull();
  });

  it("are the container of an answer of Anthropic, unless it used the web", () => {
    const container = { id: "container_1", expires_at: "2026-11-18T12:00:00Z" };
    expect(toolsOf({ type: "message", container, usage })).toMatchObject({ sessions: 1 });
    expect(toolsOf({ type: "message_delta", delta: { container }, usage })).toMatchObject({ sessions: 1 });
    const web = { ...usage, server_tool_use: { web_search_requests: 1 } };
    expect(toolsOf({ type: "message", container, usage: web })).toBeNull();
    expect(toolsOf({ type: "message", container: null, usage })).toBeNull();
  });

  it("are connectors of Mistral, whose price is not known", () => {
    const counted = (connectors: object) =>
      toolsOf({ usage: { prompt_tokens: 1, completion_tokens: 1, connectors } });
    expect(counted({ image_generation: 1 })).toMatchObject({ isUnpriced: true });
    expect(counted({})).toBeNull();
  });

  it("are not left to the tail of a body", () => {
    const body = { output: [ran("code_interpreter_call", { container_id: "a" })], usage };
    expect(readTailUsage(Buffer.from(JSON.stringify(body)))).toBeNull();
    const message = { container: { id: "a" }, usage };
    expect(readTailUsage(Buffer.from(JSON.stringify(message)))).toBeNull();
  });
});
