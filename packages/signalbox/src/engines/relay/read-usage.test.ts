import fc from "fast-check";
import { expect, it } from "vitest";
import { readTailUsage, readUsage } from "./read-usage.ts";

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
