import { countOf, recordOf, type Json } from "../json.ts";
import type { NeutralUsage } from "../neutral/usage.ts";

export function decodeMessagesUsage(usage: Json): NeutralUsage {
  const cacheReadTokens = countOf(usage["cache_read_input_tokens"]);
  const cacheWriteTokens = countOf(usage["cache_creation_input_tokens"]);
  return {
    inputTokens: countOf(usage["input_tokens"]) + cacheReadTokens + cacheWriteTokens,
    outputTokens: countOf(usage["output_tokens"]),
    cacheReadTokens,
    cacheWriteTokens,
    cacheWriteLongTokens: countOf(recordOf(usage["cache_creation"])["ephemeral_1h_input_tokens"]),
    reasoningTokens: countOf(recordOf(usage["output_tokens_details"])["thinking_tokens"]),
  };
}

/** `input_tokens` of this dialect leaves cached tokens out. */
export function encodeMessagesUsage(usage: NeutralUsage): Record<string, unknown> {
  const { inputTokens, outputTokens, cacheReadTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    input_tokens: Math.max(inputTokens - cacheReadTokens - cacheWriteTokens, 0),
    cache_creation_input_tokens: cacheWriteTokens,
    cache_read_input_tokens: cacheReadTokens,
    output_tokens: outputTokens,
    ...(reasoningTokens > 0 ? { output_tokens_details: { thinking_tokens: reasoningTokens } } : {}),
  };
}

/** Before the upstream reports anything. */
export const UNKNOWN_USAGE: Readonly<Record<string, unknown>> = {
  input_tokens: 0,
  cache_creation_input_tokens: 0,
  cache_read_input_tokens: 0,
  output_tokens: 0,
};
