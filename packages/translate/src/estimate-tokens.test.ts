import { describe, expect, it } from "vitest";
import { estimateInputTokens } from "./index.ts";
import { DIALECT_NAMES, PLAIN } from "./translate-fixture.ts";

const estimate = (content: unknown, more = {}) =>
  estimateInputTokens("messages", { model: "m", messages: [{ role: "user", content }], ...more });

describe("the estimate of input tokens", () => {
  it.each(DIALECT_NAMES)("reads a request of %s", (dialect) => {
    expect(estimateInputTokens(dialect, PLAIN[dialect])).toBeGreaterThan(1);
    expect(estimateInputTokens(dialect, PLAIN[dialect])).toBeLessThan(20);
  });

  /** Tokens of the tokenizer o200k. */
  it.each([
    ["English", "The quick brown fox jumps over the lazy dog, and nobody minds. ".repeat(20), 281],
    ["numbers", "3.14159, 2.71828, 1.41421, 1000000, 20261118 ".repeat(20), 540],
    ["JSON", JSON.stringify({ id: 17, name: "Zürich", tags: ["a", "b"], ok: true }).repeat(20), 440],
    [
      "base64",
      Buffer.from(Array.from({ length: 900 }, (_, i) => (i * i * 31 + i) % 256)).toString("base64"),
      795,
    ],
    ["Chinese", "今天天气很好，我们去公园散步吧。".repeat(20), 240],
    ["Hindi", "आज मौसम बहुत अच्छा है और हम पार्क में घूमने जा रहे हैं। ".repeat(20), 301],
  ])("of %s is near that of a tokenizer, and rather high", (_, text, tokens) => {
    const found = estimate(text) / tokens;
    expect(found).toBeGreaterThan(0.95);
    expect(found).toBeLessThan(1.5);
  });

  it("counts images and documents by part, not by the length of their data", () => {
    const image = {
      type: "image",
      source: { type: "base64", media_type: "image/png", data: "A".repeat(4_000_000) },
    };
    expect(estimate([image])).toBeLessThan(2000);
    const pdf = {
      type: "document",
      source: { type: "base64", media_type: "application/pdf", data: "A".repeat(150_000) },
    };
    expect(estimate([pdf])).toBeGreaterThanOrEqual(4000);
  });

  it("counts tools, calls and results, and ignores fields that it does not know", () => {
    const tools = [{ name: "f", description: "a word ".repeat(100), input_schema: { type: "object" } }];
    expect(estimate("Hi", { tools, brand_new: 1 })).toBeGreaterThanOrEqual(200);
    const result = [{ type: "tool_result", tool_use_id: "a", content: "a word ".repeat(100) }];
    expect(estimate(result)).toBeGreaterThanOrEqual(200);
  });
});
