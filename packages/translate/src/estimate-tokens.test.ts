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

  it("counts text by characters, and scripts without letters by signs", () => {
    expect(estimate("a".repeat(3500))).toBeCloseTo(1004, -1);
    expect(estimate("北".repeat(1000))).toBeCloseTo(1004, -1);
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
    const tools = [{ name: "f", description: "x".repeat(700), input_schema: { type: "object" } }];
    expect(estimate("Hi", { tools, brand_new: 1 })).toBeGreaterThan(200);
    const result = [{ type: "tool_result", tool_use_id: "a", content: "y".repeat(700) }];
    expect(estimate(result)).toBeGreaterThan(200);
  });
});
