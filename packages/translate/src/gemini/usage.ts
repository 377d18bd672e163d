import { countOf, type Json } from "../json.ts";
import type { NeutralUsage } from "../neutral/usage.ts";

/** `candidatesTokenCount` of this dialect leaves thoughts out, `promptTokenCount` leaves out what its tools added. */
export function decodeGeminiUsage(usage: Json): NeutralUsage {
  const reasoningTokens = countOf(usage["thoughtsTokenCount"]);
  return {
    inputTokens: countOf(usage["promptTokenCount"]) + countOf(usage["toolUsePromptTokenCount"]),
    outputTokens: countOf(usage["candidatesTokenCount"]) + reasoningTokens,
    cacheReadTokens: countOf(usage["cachedContentTokenCount"]),
    cacheWriteTokens: 0,
    cacheWriteLongTokens: 0,
    reasoningTokens,
  };
}

export function encodeGeminiUsage(usage: NeutralUsage): Record<string, unknown> {
  return {
    promptTokenCount: usage.inputTokens,
    candidatesTokenCount: Math.max(usage.outputTokens - usage.reasoningTokens, 0),
    totalTokenCount: usage.inputTokens + usage.outputTokens,
    ...(usage.cacheReadTokens > 0 ? { cachedContentTokenCount: usage.cacheReadTokens } : {}),
    ...(usage.reasoningTokens > 0 ? { thoughtsTokenCount: usage.reasoningTokens } : {}),
  };
}
