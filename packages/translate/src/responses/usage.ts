import { countOf, recordOf, type Json } from "../json.ts";
import type { NeutralUsage } from "../neutral/usage.ts";

export function decodeResponsesUsage(usage: Json): NeutralUsage {
  const input = recordOf(usage["input_tokens_details"]);
  const output = recordOf(usage["output_tokens_details"]);
  return {
    inputTokens: countOf(usage["input_tokens"]),
    outputTokens: countOf(usage["output_tokens"]),
    cacheReadTokens: countOf(input["cached_tokens"]),
    cacheWriteTokens: countOf(input["cache_write_tokens"]),
    cacheWriteLongTokens: 0,
    reasoningTokens: countOf(output["reasoning_tokens"]),
  };
}

export function encodeResponsesUsage(usage: NeutralUsage): Record<string, unknown> {
  return {
    input_tokens: usage.inputTokens,
    input_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      cache_write_tokens: usage.cacheWriteTokens,
    },
    output_tokens: usage.outputTokens,
    output_tokens_details: { reasoning_tokens: usage.reasoningTokens },
    total_tokens: usage.inputTokens + usage.outputTokens,
  };
}
