import { calcPrice } from "@pydantic/genai-prices";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { NO_USAGE } from "../../engines/relay/index.ts";
import { PriceTable } from "./price-table.ts";

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
      ["deepseek", "deepseek", "deepseek-chat"],
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

  it("follows prices that depend on the time of day", () => {
    let now = Date.parse("2026-11-01T02:00:00Z");
    const prices = new PriceTable({}, { now: () => now });
    const usage = { ...NO_USAGE, tokensIn: 1_000_000 };
    const costs = new Set<number | null>();
    for (let hour = 0; hour < 24; hour++) {
      const expected = calcPrice({ input_tokens: 1_000_000 }, "deepseek-chat", {
        providerId: "deepseek",
        timestamp: new Date(now),
      });
      const cost = prices.costOf("deepseek", "deepseek-chat", usage);
      expect(cost).toBeCloseTo(expected?.total_price ?? -1, 9);
      costs.add(cost);
      now += 3_600_000;
    }
    expect(costs.size).toBeGreaterThan(1);
  });
});
