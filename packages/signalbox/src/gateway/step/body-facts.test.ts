import fc from "fast-check";
import { expect, it } from "vitest";
import { inspectBody, inspectStart } from "./body-facts.ts";

const NAMES = ["model", "max_tokens", "max_completion_tokens", "max_output_tokens", "n", "best_of", "stream"];

it("reads the same from the scanned and from the parsed body", () => {
  const value = fc.oneof(fc.string(), fc.boolean(), fc.integer(), fc.constant(null));
  const key = fc.oneof(fc.constantFrom(...NAMES), fc.string());
  const body = fc.dictionary(key, value);
  fc.assert(
    fc.property(body, fc.constantFrom(0, 2), (fields, indent) => {
      const bytes = Buffer.from(JSON.stringify(fields, null, indent));
      expect(inspectStart(bytes)).toEqual(inspectBody(bytes, true));
    }),
  );
});

it("never throws on bytes that are not JSON", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 400 }), (bytes) => {
      inspectStart(Buffer.from(bytes));
      inspectBody(Buffer.from(bytes), false);
    }),
  );
});

it("reads the model and the output limit", () => {
  const facts = inspectBody(Buffer.from('{"model":"m","stream":true,"max_tokens":5}'), true);
  expect(facts).toEqual({ model: "m", maxOutputTokens: 5, choices: 1, tier: "", stream: "without_usage" });
});

it.each([
  ['{"model":"m","n":10,"max_tokens":7,"max_completion_tokens":9}', { choices: 10, maxOutputTokens: 9 }],
  ['{"generationConfig":{"maxOutputTokens":50,"candidateCount":3}}', { choices: 3, maxOutputTokens: 50 }],
  ['{"inferenceConfig":{"maxTokens":8}}', { choices: 1, maxOutputTokens: 8 }],
  ['{"options":{"num_predict":-1}}', { choices: 1, maxOutputTokens: null }],
  ['{"n":-5,"max_tokens":"9"}', { choices: 1, maxOutputTokens: null }],
  ['{"stream":true,"stream_options":{"include_usage":true}}', { stream: "with_usage" }],
  ['{"stream":1}', { stream: "none" }],
])("reads how much output %s asks for", (text, expected) => {
  expect(inspectBody(Buffer.from(text), true)).toMatchObject(expected);
});

it.each([
  ['{"service_tier":"priority"}', "priority"],
  [
    '{"serviceTier":{"type":"priority"},"performanceConfig":{"latency":"optimized"}}',
    "priority+latency:optimized",
  ],
  ['{"serviceTier":{"type":"default"},"performanceConfig":{"latency":"standard"}}', ""],
  ['{"speed":"fast","inference_geo":"us"}', "speed:fast+geo:us"],
])("reads the tier of %s, also of the beginning of a body", (text, tier) => {
  expect(inspectBody(Buffer.from(text), true).tier).toBe(tier);
  expect(inspectStart(Buffer.from(text)).tier).toBe(tier);
});
