import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { priceTable } from "../config/index.ts";
import { UsageError } from "./command.ts";
import { readPrices } from "./public-prices.ts";

const MAP = {
  sample_spec: { litellm_provider: "one of the providers", input_cost_per_token: 0 },
  "gpt-x": {
    litellm_provider: "openai",
    input_cost_per_token: 2.5e-6,
    output_cost_per_token: 1e-5,
    cache_read_input_token_cost: 1.25e-6,
    input_cost_per_token_priority: 4.25e-6,
    output_cost_per_token_priority: 2e-5,
    input_cost_per_token_batches: 1.25e-6,
    search_context_cost_per_query: { search_context_size_low: 0.03, search_context_size_high: 0.05 },
  },
  "gemini/flash": {
    litellm_provider: "gemini",
    input_cost_per_token: 3e-7,
    output_cost_per_token: 2.5e-6,
    output_cost_per_reasoning_token: 2.5e-6,
    input_cost_per_audio_token: 1e-6,
  },
  "openrouter/openai/gpt-x": {
    litellm_provider: "openrouter",
    input_cost_per_token: 1e-6,
    output_cost_per_token: 1e-6,
  },
  "gemini/pro": {
    litellm_provider: "gemini",
    input_cost_per_token: 1e-6,
    input_cost_per_token_above_200k_tokens: 2e-6,
  },
  picture: { litellm_provider: "openai", output_cost_per_image: 0.04 },
  other: { litellm_provider: "somebody", input_cost_per_token: 1 },
};

describe("a list of prices", () => {
  it("reads the public map", () => {
    const { prices, leftOut } = readPrices(JSON.stringify(MAP));
    expect(prices).toEqual({
      openai: {
        "gpt-x": { in: 2.5, out: 10, cached: 1.25, searches: 50, tiers: { batch: 0.5, priority: 2 } },
      },
      "google-ai-studio": { flash: { in: 0.3, out: 2.5, reasoning: 2.5, audioIn: 1 } },
      openrouter: { "openai/gpt-x": { in: 1, out: 1 } },
    });
    expect(Object.values(leftOut)).toEqual([1, 1, 1]);
  });

  it("reads a table of this service, also in an object with prices", () => {
    const table = { openai: { "*": { in: 1, out: 2, tiers: { flex: 0.5 } } } };
    expect(readPrices(JSON.stringify(table)).prices).toEqual(table);
    expect(readPrices(JSON.stringify({ prices: table })).prices).toEqual(table);
  });

  it.each(["", "[]", "5", "{", '{"openai":{"x":{"in":-1,"out":1}}}', '{"openai":{"x":{"in":"1"}}}'])(
    "refuses %j",
    (text) => {
      expect(() => readPrices(text)).toThrow(UsageError);
    },
  );

  it("gives a table that the service accepts, or an error that names the reason, for any JSON", () => {
    const price = fc.oneof(fc.double(), fc.string(), fc.constant(null));
    const entry = fc.dictionary(
      fc.constantFrom("input_cost_per_token", "output_cost_per_token", "cache_read_input_token_cost"),
      price,
    );
    const maps = fc.dictionary(
      fc.string(),
      entry.map((members) => ({ litellm_provider: "openai", ...members })),
    );
    fc.assert(
      fc.property(fc.oneof(maps, fc.jsonValue()), (value) => {
        try {
          const { prices } = readPrices(JSON.stringify(value));
          expect(priceTable.safeParse(prices).success).toBe(true);
        } catch (error) {
          expect(error).toBeInstanceOf(UsageError);
        }
      }),
    );
  });
});
