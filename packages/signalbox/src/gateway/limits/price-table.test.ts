import { calcPrice } from "@pydantic/genai-prices";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_USAGE, readUsage } from "../../engines/relay/index.ts";
import { correctedPrices } from "./corrected-prices.ts";
import { costByCaller, PriceTable } from "./price-table.ts";

const NOW = Date.parse("2026-11-01T12:00:00Z");
const clock = { now: () => NOW };

describe("the price table", () => {
  it("has a price of 0 for echo, which the account can replace", () => {
    const prices = new PriceTable({}, clock);
    const usage = { ...NO_USAGE, tokensIn: 1_000_000, tokensOut: 1_000_000 };
    expect(prices.costOf("echo", "any", usage)).toBe(0);
    expect(prices.costOf("echo", "any", usage, { echo: { "*": { in: 1, out: 2 } } })).toBe(3);
  });

  it("computes the same prices as the package", () => {
    const prices = new PriceTable({}, clock);
    const models = fc.constantFrom(
      ["openai", "openai", "gpt-5-mini"],
      ["openai", "openai", "gpt-4o-2024-08-06"],
      ["anthropic", "anthropic", "claude-sonnet-4-5-20250929"],
      ["google-ai-studio", "google", "gemini-2.5-pro"],
      ["azure-openai", "azure", "gpt-4o"],
      ["grok", "x-ai", "grok-4"],
      ["deepseek", "deepseek", "deepseek-v4-pro"],
    );
    fc.assert(
      fc.property(
        models,
        fc.nat(400_000),
        fc.nat(1000),
        fc.nat(1000),
        fc.nat(50_000),
        ([slug = "", id = "", model = ""], plain, cached, written, tokensOut) => {
          const tokensIn = plain + cached + written;
          const usage = {
            ...NO_USAGE,
            tokensIn,
            tokensInCached: cached,
            tokensInCacheWrite: written,
            tokensOut,
          };
          const expected = calcPrice(
            {
              input_tokens: tokensIn,
              cache_read_tokens: cached,
              cache_write_tokens: written,
              output_tokens: tokensOut,
            },
            model,
            { providerId: id, timestamp: new Date(NOW) },
          );
          expect(expected).not.toBeNull();
          expect(prices.costOf(slug, model, usage)).toBeCloseTo(expected?.total_price ?? -1, 9);
        },
      ),
    );
  });

  it("charges less for input read from the provider's cache", () => {
    const prices = new PriceTable({}, clock);
    const cold = prices.costOf("openai", "gpt-5", { ...NO_USAGE, tokensIn: 1000 });
    const hot = prices.costOf("openai", "gpt-5", { ...NO_USAGE, tokensIn: 1000, tokensInCached: 900 });
    expect(hot).toBeLessThan(cold ?? 0);
  });

  it("returns null for an unknown price", () => {
    const prices = new PriceTable({}, clock);
    const usage = { ...NO_USAGE, tokensIn: 10, tokensOut: 10 };
    expect(prices.costOf("openai", "no-such-model", usage)).toBeNull();
    expect(prices.costOf("ollama", "gpt-4o", usage)).toBeNull();
    expect(prices.costOf("custom-mine", "gpt-4o", usage)).toBeNull();
    expect(prices.costOf("openai", "", usage)).toBeNull();
    expect(prices.costOf("constructor", "toString", usage)).toBeNull();
  });

  describe("of what is billed beside tokens at the usual price", () => {
    const prices = new PriceTable({}, clock);
    const tokens = { ...NO_USAGE, tokensIn: 10_000, tokensOut: 1000 };
    const cost = (provider: string, model: string, body: object) => {
      const { usage } = readUsage({ model, ...body });
      return usage === null ? null : prices.costOf(provider, model, usage);
    };

    it.each([
      ["openai", "gpt-5.6-sol", "", 0.06],
      ["openai", "gpt-5.6-sol", "priority", 0.12],
      ["openai", "gpt-5.6-sol", "fast", 0.12],
      ["openai", "gpt-6-astra", "ultrafast", 0.9],
      ["openai", "gpt-6-astra", "a-tier-of-tomorrow", 0.9],
      ["anthropic", "claude-opus-5", "speed:fast", 0.15],
      ["anthropic", "claude-opus-4-6", "speed:fast", 0.45],
      ["anthropic", "claude-opus-5", "geo:us", 0.0825],
      ["anthropic", "claude-opus-5", "batch+geo:us", 0.04125],
      ["anthropic", "claude-opus-5", "priority", 0.075],
      [
        "deepseek",
        "deepseek-v4-pro",
        "priority",
        (prices.costOf("deepseek", "deepseek-v4-pro", tokens) ?? 0) * 6,
      ],
      ["deepseek", "deepseek-v4-pro", "flex", prices.costOf("deepseek", "deepseek-v4-pro", tokens)],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6", "", 0.0495],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6", "priority", 0.0495 * 1.75],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6", "flex", 0.0495 / 2],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6", "latency:optimized", 0.0495 * 1.25],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6", "a-tier-of-tomorrow", 0.0495 * 6],
    ])("%s %s in the tier %j costs %d", (provider, model, tier, expected) => {
      expect(prices.costOf(provider, model, { ...tokens, tier })).toBeCloseTo(expected ?? -1, 9);
    });

    it("takes the factors of the operator by the new and the former name of a tier", () => {
      const own = { openai: { m: { in: 1, out: 1, tiers: { priority: 3 } } } };
      const million = { ...NO_USAGE, tokensIn: 1_000_000 };
      expect(prices.costOf("openai", "m", { ...million, tier: "fast" }, own)).toBe(3);
    });

    it("bills the rounds of an answer, each at its own model", () => {
      const compaction = {
        usage: {
          input_tokens: 682,
          output_tokens: 1320,
          iterations: [
            { type: "compaction", input_tokens: 60_385, output_tokens: 592 },
            { type: "message", input_tokens: 682, output_tokens: 1320 },
          ],
        },
      };
      expect(cost("anthropic", "claude-opus-4-6", compaction)).toBeCloseTo(0.353135, 6);
      const advisor = {
        usage: {
          input_tokens: 1000,
          output_tokens: 1000,
          server_tool_use: { web_search_requests: 2 },
          iterations: [
            { type: "message", input_tokens: 1000, output_tokens: 1000 },
            { type: "advisor_message", model: "claude-opus-4-7", input_tokens: 2000, output_tokens: 100 },
          ],
        },
      };
      expect(cost("anthropic", "claude-sonnet-4-6", advisor)).toBeCloseTo(0.018 + 0.0125 + 0.02, 9);
      const unknown = {
        usage: { input_tokens: 1, iterations: [{ model: "claude-nobody", input_tokens: 1 }] },
      };
      expect(cost("anthropic", "claude-sonnet-4-6", unknown)).toBeNull();
    });

    it("bills searches that the provider made", () => {
      const searches = Array.from({ length: 50 }, () => ({
        type: "web_search_call",
        action: { type: "search" },
      }));
      const usage = { input_tokens: 1000, output_tokens: 500 };
      const base = cost("openai", "gpt-5", { output: [], usage }) ?? 0;
      expect(cost("openai", "gpt-5", { output: searches, usage })).toBeCloseTo(base + 0.5, 9);
      const opened = { type: "web_search_call", action: { type: "open_page" } };
      expect(cost("openai", "gpt-5", { output: [opened], usage })).toBeCloseTo(base, 9);
      expect(cost("openai", "gpt-5", { output: [{ type: "file_search_call" }], usage })).toBeCloseTo(
        base + 0.0025,
        9,
      );
      const grounded = (model: string) => {
        const usageMetadata = { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 };
        const groundingMetadata = { webSearchQueries: ["one", "two"] };
        const plain = cost("google-ai-studio", model, { candidates: [{}], usageMetadata }) ?? 0;
        const found = cost("google-ai-studio", model, { candidates: [{ groundingMetadata }], usageMetadata });
        return (found ?? 0) - plain;
      };
      expect(grounded("gemini-2.5-flash")).toBeCloseTo(0.035, 9);
      expect(grounded("gemini-3-pro-preview")).toBeCloseTo(0.028, 9);
    });

    it("bills other tools that the provider ran", () => {
      const usage = { input_tokens: 1000, output_tokens: 500 };
      const base = cost("openai", "gpt-5", { output: [], usage }) ?? 0;
      const withCode = (container: object) =>
        cost("openai", "gpt-5", {
          output: [{ type: "code_interpreter_call", container_id: "a" }],
          tools: [{ type: "code_interpreter", container }],
          usage,
        });
      expect(withCode({ type: "auto" })).toBeCloseTo(base + 0.03, 9);
      expect(withCode({ type: "auto", memory_limit: "64g" })).toBeCloseTo(base + 1.92, 9);
      const picture = {
        output: [{ type: "image_generation_call" }],
        tools: [{ type: "image_generation", model: "gpt-image-1" }],
        tool_usage: { image_gen: { input_tokens: 100, output_tokens: 1000 } },
        usage,
      };
      expect(cost("openai", "gpt-5", picture)).toBeCloseTo(base + 0.0405, 9);
      const place = {
        candidates: [{ groundingMetadata: { groundingChunks: [{ maps: {} }] } }],
        usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 10, totalTokenCount: 20 },
      };
      const plain = cost("google-ai-studio", "gemini-2.5-flash", { ...place, candidates: [{}] }) ?? 0;
      expect(cost("google-ai-studio", "gemini-2.5-flash", place)).toBeCloseTo(plain + 0.025, 9);
    });

    it("has no price for a tool without a known one, and states the provider's where it has one", () => {
      const usage = { input_tokens: 1000, output_tokens: 500 };
      const unknown = { output: [{ type: "time_travel_call" }], usage };
      expect(cost("openai", "gpt-5", unknown)).toBeNull();
      expect(cost("grok", "grok-4", { ...unknown, usage: { ...usage, cost: 0.5 } })).toBe(0.5);
      const searched = { ...NO_USAGE, tokensIn: 1000, searches: 1 };
      expect(prices.costOf("deepseek", "deepseek-chat", searched)).toBeNull();
      // A price by the request includes its searches.
      expect(prices.costOf("perplexity-ai", "sonar", searched)).toBeCloseTo(0.013, 9);
      const operator = { openai: { "*": { in: 1, out: 1 } } };
      const session = { sessions: 1, maps: 0, rounds: [], isUnpriced: false };
      expect(
        prices.costOf("openai", "gpt-5", { ...NO_USAGE, tokensIn: 1_000_000, tools: session }, operator),
      ).toBeCloseTo(1.03, 9);
    });

    it("has no price for sound and pages of a model that is priced by tokens, unless it states its tokens", () => {
      expect(prices.costOf("openai", "gpt-4o-transcribe", { ...NO_USAGE, seconds: 60 })).toBeNull();
      expect(prices.costOf("openai", "gpt-5", { ...NO_USAGE, pages: 3 })).toBeNull();
      expect(prices.costOf("openai", "gpt-5", { ...NO_USAGE, images: 3 })).toBeNull();
      expect(prices.costOf("openai", "gpt-5", { ...tokens, seconds: 60 })).toBeGreaterThan(0);
    });

    it("bills sound by the hour and documents by the page", () => {
      expect(cost("openai", "whisper-1", { usage: { type: "duration", seconds: 1800 } })).toBeCloseTo(
        0.18,
        9,
      );
      expect(cost("groq", "whisper-large-v3", { text: "Hi", duration: 3600 })).toBeCloseTo(0.111, 9);
      expect(cost("mistral", "mistral-ocr-2512", { usage_info: { pages_processed: 500 } })).toBeCloseTo(1, 9);
      const batch = { ...NO_USAGE, pages: 500, tier: "batch" };
      expect(prices.costOf("mistral", "mistral-ocr-2512", batch)).toBeCloseTo(0.5, 9);
    });

    it("bills sound and pages by the operator's rate or, without one, by the list price", () => {
      const sound = { ...NO_USAGE, seconds: 3600 };
      expect(prices.costOf("openai", "whisper-1", sound, { openai: { "*": { in: 1, out: 1 } } })).toBeCloseTo(
        0.36,
        9,
      );
      expect(
        prices.costOf("openai", "whisper-1", sound, { openai: { "*": { in: 1, out: 1, audioHour: 2 } } }),
      ).toBe(2);
      expect(
        prices.costOf("groq", "none", { ...NO_USAGE, pages: 1 }, { groq: { none: { in: 1, out: 1 } } }),
      ).toBeNull();
    });

    it("has no price for tokens of a model without a rate for tokens", () => {
      expect(prices.costOf("openai", "whisper-1", tokens)).toBeNull();
      expect(prices.costOf("mistral", "mistral-ocr-2512", tokens)).toBeNull();
      expect(prices.costOf("google-ai-studio", "gemma-3-27b-it", tokens)).toBeNull();
    });

    it.each([
      ["anthropic", "claude-sonnet-4-6"],
      ["google-vertex-ai", "claude-sonnet-4-6"],
      ["aws-bedrock", "anthropic.claude-sonnet-4-6"],
    ])("bills a cache write for an hour with 1.6 times that for five minutes at %s", (provider, model) => {
      const written = { ...NO_USAGE, tokensIn: 1000, tokensInCacheWrite: 1000 };
      const short = prices.costOf(provider, model, written) ?? 0;
      const long = prices.costOf(provider, model, { ...written, tokensInCacheWrite1h: 1000 });
      expect(short).toBeGreaterThan(0);
      expect(long).toBeCloseTo(short * 1.6, 9);
    });

    it.each([
      ["google-ai-studio", "models/gemini-2.5-flash", "gemini-2.5-flash", 1, 0],
      ["google-vertex-ai", "publishers/google/models/gemini-2.5-flash", "gemini-2.5-flash", 1, 0],
      [
        "aws-bedrock",
        "arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-6",
        "us.anthropic.claude-sonnet-4-6",
        1,
        0,
      ],
      [
        "aws-bedrock",
        "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-sonnet-4-6",
        "anthropic.claude-sonnet-4-6",
        1,
        0,
      ],
      ["openrouter", "anthropic/claude-sonnet-4.6:nitro", "anthropic/claude-sonnet-4.6", 1, 0],
      ["openrouter", "anthropic/claude-sonnet-4.6:online", "anthropic/claude-sonnet-4.6", 1, 0.02],
      ["openai", "ft:gpt-4.1-2025-04-14:org::id", "gpt-4.1", 1.5, 0],
      ["openai", "ft:gpt-4.1-mini-2025-04-14:org::id", "gpt-4.1-mini", 2, 0],
    ])("prices %s %s as %s, times %d, plus %d", (provider, model, listed, factor, more) => {
      const usual = prices.costOf(provider, listed, tokens) ?? 0;
      expect(usual).toBeGreaterThan(0);
      expect(prices.costOf(provider, model, tokens)).toBeCloseTo(usual * factor + more, 9);
    });

    it("prices sound of models whose entry has only prices of text", () => {
      const sound = { ...NO_USAGE, tokensIn: 1000, tokensInAudio: 1000 };
      expect(prices.costOf("openai", "gpt-4o-audio-preview", sound)).toBeCloseTo(0.04, 9);
    });

    it.each([
      ["baseten", "deepseek-ai/DeepSeek-V4-Pro"],
      ["minimax", "MiniMax-M2"],
      ["novita", "deepseek/deepseek-r1"],
      ["ovhcloud", "Llama-3.1-8B-Instruct"],
      ["voyage", "voyage-2"],
      ["zai", "glm-5.2"],
    ])("knows list prices of %s", (provider, model) => {
      expect(prices.costOf(provider, model, tokens)).toBeGreaterThan(0);
    });
  });

  it("takes the caller's prices for cached input, which are those of other input if they are not stated", () => {
    const usage = { ...NO_USAGE, tokensIn: 100, tokensInCached: 50, tokensInCacheWrite: 20, tokensOut: 10 };
    expect(costByCaller({ perTokenIn: 2, perTokenOut: 5 }, usage)).toBe(250);
    expect(costByCaller({ perTokenIn: 2, perTokenOut: 5, perCacheRead: 1, perCacheWrite: 3 }, usage)).toBe(
      220,
    );
    expect(costByCaller({ total: 7 }, usage)).toBe(7);
  });

  it("prefers the configuration's prices, per model and per provider", () => {
    const prices = new PriceTable(
      {
        openai: { "gpt-5": { in: 1, out: 2, cached: 0.5, reasoning: 4 } },
        "custom-mine": { "*": { in: 10, out: 20 } },
      },
      clock,
    );
    const usage = {
      ...NO_USAGE,
      tokensIn: 3_000_000,
      tokensInCached: 1_000_000,
      tokensOut: 2_000_000,
      tokensOutReasoning: 1_000_000,
    };
    expect(prices.costOf("openai", "gpt-5", usage)).toBeCloseTo(2 + 0.5 + 2 + 4, 9);
    expect(prices.costOf("custom-mine", "whatever", usage)).toBeCloseTo(30 + 40, 9);
    expect(prices.costOf("openai", "constructor", usage)).toBeNull();
  });

  it("knows which models may have a price under another name", () => {
    const prices = new PriceTable({ "custom-mine": { known: { in: 1, out: 2 } } }, clock);
    const own = { "custom-other": { "*": { in: 1, out: 2 } } };
    // Loads the package.
    expect(prices.costOf("openai", "gpt-4o", NO_USAGE)).toBe(0);
    expect(prices.needsOtherName("azure-openai", "my-deployment")).toBe(true);
    expect(prices.needsOtherName("azure-openai", "gpt-4o")).toBe(false);
    expect(prices.needsOtherName("custom-mine", "known")).toBe(false);
    expect(prices.needsOtherName("custom-mine", "alias")).toBe(true);
    expect(prices.needsOtherName("custom-other", "any", own)).toBe(false);
    expect(prices.needsOtherName("custom-unpriced", "any", own)).toBe(false);
  });

  it.each([
    ["deepseek-flash", "2026-11-18T00:59:59Z", 0.15],
    ["deepseek-flash", "2026-11-18T01:00:00Z", 0.3],
    ["deepseek-v4-flash", "2026-11-18T09:59:59Z", 0.3],
    ["deepseek-chat", "2026-11-18T12:00:00Z", 0.15],
    ["deepseek-reasoner", "2026-11-21T09:00:00Z", 0.15],
  ])("corrects the price of %s: a million tokens at %s cost %d", (model, at, expected) => {
    const prices = new PriceTable({}, { now: () => Date.parse(at) });
    expect(prices.costOf("deepseek", model, { ...NO_USAGE, tokensIn: 1_000_000 })).toBeCloseTo(expected, 9);
  });

  it("leaves a price alone that is not known to be wrong", () => {
    const now = Date.parse("2026-11-18T12:00:00Z");
    expect(correctedPrices("deepseek", "deepseek-chat", { input_mtok: 0.2 }, now)).toBeNull();
    expect(correctedPrices("deepseek", "deepseek-v4-pro", { input_mtok: 0.435 }, now)).toBeNull();
    expect(correctedPrices("openrouter", "deepseek-chat", { input_mtok: 0.27 }, now)).toBeNull();
  });

  it("follows prices that depend on the time of day", () => {
    let now = Date.parse("2026-11-01T02:00:00Z");
    const prices = new PriceTable({}, { now: () => now });
    const usage = { ...NO_USAGE, tokensIn: 1_000_000 };
    const costs = new Set<number | null>();
    for (let hour = 0; hour < 24; hour++) {
      const expected = calcPrice({ input_tokens: 1_000_000 }, "deepseek-v4-pro", {
        providerId: "deepseek",
        timestamp: new Date(now),
      });
      const cost = prices.costOf("deepseek", "deepseek-v4-pro", usage);
      expect(cost).toBeCloseTo(expected?.total_price ?? -1, 9);
      costs.add(cost);
      now += 3_600_000;
    }
    expect(costs.size).toBeGreaterThan(1);
  });
});
