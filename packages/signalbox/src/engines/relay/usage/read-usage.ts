/**
 * Finds token counts in a provider's response object, whichever family of field names it uses.
 *
 * The shape decides, not the provider: one provider answers in several (Gemini's OpenAI-compatible endpoint, OpenRouter's Messages
 * endpoint), and the families do not overlap. What is unified here:
 * 1. `tokensIn` and `tokensOut` are totals. Anthropic and Bedrock count cached input beside `input_tokens`, Gemini counts thoughts
 *    beside the candidates, xAI counts reasoning beside `completion_tokens`: these are added.
 * 2. A count that is missing, negative or not a number is 0.
 */
import { type CallUsage, NO_USAGE } from "../../call-log/call-log.ts";

type Fields = Readonly<Record<string, unknown>>;

/** What one object of a response says; null fields were not in it. */
export interface UsageSighting {
  readonly usage: CallUsage | null;
  readonly model: string | null;
}

/** `value` is a whole JSON body, one event of a stream, or the array that Gemini streams without server-sent events. */
export function readUsage(value: unknown): UsageSighting {
  if (Array.isArray(value)) return readArray(value);
  if (!isFields(value)) return NOTHING;
  // OpenAI Responses events carry the response, Anthropic's message_start the message, Workers AI wraps everything in `result`.
  const inner = fieldsOf(value, "response") ?? fieldsOf(value, "message") ?? fieldsOf(value, "result");
  const sighting = inner === undefined ? NOTHING : readObject(inner);
  const own = readObject(value);
  return { usage: own.usage ?? sighting.usage, model: own.model ?? sighting.model };
}

const NOTHING: UsageSighting = { usage: null, model: null };

/** The last element that has usage: counts in a stream are running totals. */
function readArray(values: readonly unknown[]): UsageSighting {
  let found = NOTHING;
  for (let i = values.length - 1; i >= 0 && (found.usage === null || found.model === null); i--) {
    const value = values[i];
    if (!isFields(value)) continue;
    const next = readObject(value);
    found = { usage: found.usage ?? next.usage, model: found.model ?? next.model };
  }
  return found;
}

function readObject(object: Fields): UsageSighting {
  const model = object["model"] ?? object["modelVersion"];
  return {
    usage: usageOf(object),
    model: typeof model === "string" && model !== "" ? model : null,
  };
}

function usageOf(object: Fields): CallUsage | null {
  const gemini = fieldsOf(object, "usageMetadata");
  if (gemini !== undefined) return readUsageFields(gemini);
  const usage = fieldsOf(object, "usage");
  if (usage !== undefined) return readUsageFields(usage);
  // Ollama's native answers have the counts at the top.
  return "eval_count" in object || "prompt_eval_count" in object ? readUsageFields(object) : null;
}

/** Counts out of the object that holds them; null when it holds none that we know. */
export function readUsageFields(usage: Fields): CallUsage | null {
  if ("promptTokenCount" in usage || "totalTokenCount" in usage) return fromGemini(usage);
  if ("prompt_tokens" in usage || "completion_tokens" in usage) return fromChatCompletions(usage);
  if ("input_tokens" in usage || "output_tokens" in usage) return fromInputOutput(usage);
  if ("inputTokens" in usage || "outputTokens" in usage) return fromBedrock(usage);
  if ("eval_count" in usage || "prompt_eval_count" in usage) {
    return total(count(usage, "prompt_eval_count"), count(usage, "eval_count"));
  }
  const cohere = fieldsOf(usage, "tokens");
  return cohere === undefined ? null : fromInputOutput(cohere);
}

function fromChatCompletions(usage: Fields): CallUsage {
  const input = fieldsOf(usage, "prompt_tokens_details") ?? EMPTY;
  const output = fieldsOf(usage, "completion_tokens_details") ?? EMPTY;
  const tokensIn = count(usage, "prompt_tokens");
  const tokensOut = count(usage, "completion_tokens");
  const reasoning = count(output, "reasoning_tokens");
  const isReasoningBeside =
    reasoning > 0 && count(usage, "total_tokens") === tokensIn + tokensOut + reasoning;
  return {
    tokensIn,
    tokensOut: isReasoningBeside ? tokensOut + reasoning : tokensOut,
    tokensInCached: count(input, "cached_tokens") || count(usage, "prompt_cache_hit_tokens"),
    tokensInCacheWrite: count(input, "cache_write_tokens"),
    tokensOutReasoning: reasoning,
  };
}

/** OpenAI Responses (details in sub-objects, totals inclusive) and Anthropic Messages (cached input beside the rest). */
function fromInputOutput(usage: Fields): CallUsage {
  const input = fieldsOf(usage, "input_tokens_details") ?? EMPTY;
  const output = fieldsOf(usage, "output_tokens_details") ?? EMPTY;
  const cacheRead = count(usage, "cache_read_input_tokens");
  const cacheWrite = count(usage, "cache_creation_input_tokens");
  return {
    tokensIn: count(usage, "input_tokens") + cacheRead + cacheWrite,
    tokensOut: count(usage, "output_tokens"),
    tokensInCached: cacheRead || count(input, "cached_tokens"),
    tokensInCacheWrite: cacheWrite || count(input, "cache_write_tokens"),
    tokensOutReasoning: count(output, "reasoning_tokens") || count(output, "thinking_tokens"),
  };
}

function fromGemini(usage: Fields): CallUsage {
  const thoughts = count(usage, "thoughtsTokenCount");
  return {
    tokensIn: count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
    tokensOut: count(usage, "candidatesTokenCount") + thoughts,
    tokensInCached: count(usage, "cachedContentTokenCount"),
    tokensInCacheWrite: 0,
    tokensOutReasoning: thoughts,
  };
}

function fromBedrock(usage: Fields): CallUsage {
  const cacheRead = count(usage, "cacheReadInputTokens");
  const cacheWrite = count(usage, "cacheWriteInputTokens");
  return {
    ...total(count(usage, "inputTokens") + cacheRead + cacheWrite, count(usage, "outputTokens")),
    tokensInCached: cacheRead,
    tokensInCacheWrite: cacheWrite,
  };
}

/**
 * Usage of a stream whose first and last sighting are both partial: Anthropic states the input at the start and the output at the
 * end, where the input may be missing.
 */
export function mergeUsage(first: CallUsage | null, last: CallUsage | null): CallUsage {
  if (first === null || last === null) return last ?? first ?? NO_USAGE;
  const isInputKnown = last.tokensIn > 0;
  const input = isInputKnown ? last : first;
  return {
    tokensIn: input.tokensIn,
    tokensInCached: input.tokensInCached,
    tokensInCacheWrite: input.tokensInCacheWrite,
    tokensOut: Math.max(last.tokensOut, first.tokensOut),
    tokensOutReasoning: Math.max(last.tokensOutReasoning, first.tokensOutReasoning),
  };
}

const EMPTY: Fields = {};

function total(tokensIn: number, tokensOut: number): CallUsage {
  return { ...NO_USAGE, tokensIn, tokensOut };
}

function count(fields: Fields, name: string): number {
  const value = fields[name];
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : 0;
}

function fieldsOf(fields: Fields, name: string): Fields | undefined {
  const value = fields[name];
  return isFields(value) ? value : undefined;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
