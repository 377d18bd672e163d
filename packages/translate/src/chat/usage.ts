import { countOf, recordOf, type Json } from "../json.ts";
import type { NeutralUsage } from "../neutral/usage.ts";

export function decodeChatUsage(usage: Json): NeutralUsage {
  const input = recordOf(usage["prompt_tokens_details"]);
  const output = recordOf(usage["completion_tokens_details"]);
  const inputTokens = countOf(usage["prompt_tokens"]);
  const completionTokens = countOf(usage["completion_tokens"]);
  const reasoningTokens = countOf(output["reasoning_tokens"]);
  // Some providers of this shape count reasoning apart from the completion; their total shows it.
  const isApart =
    reasoningTokens > 0 &&
    countOf(usage["total_tokens"]) === inputTokens + completionTokens + reasoningTokens;
  return {
    inputTokens,
    outputTokens: isApart ? completionTokens + reasoningTokens : completionTokens,
    cacheReadTokens: countOf(input["cached_tokens"] ?? usage["prompt_cache_hit_tokens"]),
    cacheWriteTokens: countOf(input["cache_write_tokens"]),
    cacheWriteLongTokens: 0,
    reasoningTokens,
  };
}

export function encodeChatUsage(usage: NeutralUsage): Record<string, unknown> {
  return {
    prompt_tokens: usage.inputTokens,
    completion_tokens: usage.outputTokens,
    total_tokens: usage.inputTokens + usage.outputTokens,
    prompt_tokens_details: {
      cached_tokens: usage.cacheReadTokens,
      ...(usage.cacheWriteTokens > 0 ? { cache_write_tokens: usage.cacheWriteTokens } : {}),
    },
    completion_tokens_details: { reasoning_tokens: usage.reasoningTokens },
  };
}
