/**
 * Reads token counts from a model's response: from parsed objects, and from bytes that are not parsed whole.
 *
 * The field names decide which family of APIs a response belongs to, not the server: one server may use several, and the families do
 * not overlap. The counts are unified:
 * 1. `tokensIn` and `tokensOut` are totals. Anthropic and Bedrock count cached input separately from `input_tokens`, Gemini counts
 *    thoughts separately from candidates, and xAI counts reasoning separately from `completion_tokens`; these are added.
 * 2. A count that is missing, negative or not an integer is 0.
 * See docs/decisions/0017.
 */
import { isUtf8 } from "node:buffer";
import {
  BACKSLASH,
  CLOSE_BRACE,
  COLON,
  endOfLevel,
  endOfString,
  OPEN_BRACE,
  skipSpace,
} from "./json-scan.ts";

export interface Usage {
  readonly tokensIn: number;
  readonly tokensOut: number;
  /** Part of `tokensIn` that was read from the provider's prompt cache. */
  readonly tokensInCached: number;
  /** Part of `tokensIn` that was written to the provider's prompt cache. */
  readonly tokensInCacheWrite: number;
  /** Part of `tokensOut` that was spent on reasoning. */
  readonly tokensOutReasoning: number;
}

export const NO_USAGE: Usage = {
  tokensIn: 0,
  tokensOut: 0,
  tokensInCached: 0,
  tokensInCacheWrite: 0,
  tokensOutReasoning: 0,
};

type Fields = Readonly<Record<string, unknown>>;

/** The usage and the model that one object of a response states; null for what it does not state. */
export interface FoundUsage {
  readonly usage: Usage | null;
  readonly model: string | null;
}

export const NOTHING_FOUND: FoundUsage = { usage: null, model: null };

/** Reads a whole JSON body, one event of a stream, or the array that Gemini streams without server-sent events. */
export function readUsage(value: unknown): FoundUsage {
  if (Array.isArray(value)) return readArray(value);
  if (!isFields(value)) return NOTHING_FOUND;
  // OpenAI Responses events contain `response`, Anthropic's message_start contains `message`, Workers AI wraps all in `result`.
  const inner = fieldsOf(value, "response") ?? fieldsOf(value, "message") ?? fieldsOf(value, "result");
  const nested = inner === undefined ? NOTHING_FOUND : readObject(inner);
  const own = readObject(value);
  return { usage: own.usage ?? nested.usage, model: own.model ?? nested.model };
}

/** Takes the last element with usage: counts in a stream are running totals. */
function readArray(values: readonly unknown[]): FoundUsage {
  let found = NOTHING_FOUND;
  for (let i = values.length - 1; i >= 0 && (found.usage === null || found.model === null); i--) {
    const value = values[i];
    if (!isFields(value)) continue;
    const next = readObject(value);
    found = { usage: found.usage ?? next.usage, model: found.model ?? next.model };
  }
  return found;
}

function readObject(object: Fields): FoundUsage {
  const model = object["model"] ?? object["modelVersion"];
  return {
    usage: usageOf(object),
    model: typeof model === "string" && model !== "" ? model : null,
  };
}

function usageOf(object: Fields): Usage | null {
  const gemini = fieldsOf(object, "usageMetadata");
  if (gemini !== undefined) return readUsageFields(gemini);
  const usage = fieldsOf(object, "usage");
  if (usage !== undefined) return readUsageFields(usage);
  // Ollama's native API has the counts at the top level.
  return "eval_count" in object || "prompt_eval_count" in object ? readUsageFields(object) : null;
}

/** Reads the object that contains the counts; null when it contains no known count. */
function readUsageFields(usage: Fields): Usage | null {
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

function fromChatCompletions(usage: Fields): Usage {
  const input = fieldsOf(usage, "prompt_tokens_details") ?? EMPTY;
  const output = fieldsOf(usage, "completion_tokens_details") ?? EMPTY;
  const tokensIn = count(usage, "prompt_tokens");
  const tokensOut = count(usage, "completion_tokens");
  const reasoning = count(output, "reasoning_tokens");
  const isReasoningSeparate =
    reasoning > 0 && count(usage, "total_tokens") === tokensIn + tokensOut + reasoning;
  return {
    tokensIn,
    tokensOut: isReasoningSeparate ? tokensOut + reasoning : tokensOut,
    tokensInCached: count(input, "cached_tokens") || count(usage, "prompt_cache_hit_tokens"),
    tokensInCacheWrite: count(input, "cache_write_tokens"),
    tokensOutReasoning: reasoning,
  };
}

/** OpenAI Responses (details in nested objects, totals inclusive) and Anthropic Messages (cached input counted separately). */
function fromInputOutput(usage: Fields): Usage {
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

function fromGemini(usage: Fields): Usage {
  const thoughts = count(usage, "thoughtsTokenCount");
  return {
    tokensIn: count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
    tokensOut: count(usage, "candidatesTokenCount") + thoughts,
    tokensInCached: count(usage, "cachedContentTokenCount"),
    tokensInCacheWrite: 0,
    tokensOutReasoning: thoughts,
  };
}

function fromBedrock(usage: Fields): Usage {
  const cacheRead = count(usage, "cacheReadInputTokens");
  const cacheWrite = count(usage, "cacheWriteInputTokens");
  return {
    ...total(count(usage, "inputTokens") + cacheRead + cacheWrite, count(usage, "outputTokens")),
    tokensInCached: cacheRead,
    tokensInCacheWrite: cacheWrite,
  };
}

/** Usage of a stream that states it in parts: Anthropic states the input at the start, and the output, sometimes alone, at the end. */
export function mergeUsage(first: Usage | null, last: Usage | null): Usage {
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

function total(tokensIn: number, tokensOut: number): Usage {
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

const USAGE_KEY = '"usage"';
/** Takes precedence over `usage` in an object that has both. */
const METADATA_KEY = '"usageMetadata"';
/** What both keys begin with. */
export const USAGE_MARKER = '"usage';
/** More than a provider's usage, or what follows it, takes. */
const MAX_TAIL_BYTES = 4096;
/** A usage object takes a few hundred bytes; a longer object is something else. */
const MAX_OBJECT_BYTES = 16 * 1024;
const MODEL = /(?<!\\)"model(?:Version)?"\s*:\s*"([^"\\]{1,256})"/;

/**
 * Reads the `usage` member of a whole JSON body near its end, without parsing the rest. Null when the tail alone does not prove that
 * parsing the whole body gives the same result.
 */
export function readTailUsage(bytes: Buffer): Usage | null {
  const key = bytes.lastIndexOf(USAGE_KEY, undefined, "latin1");
  if (key === -1 || bytes.length - key > MAX_TAIL_BYTES) return null;
  const start = objectOfKey(bytes, key);
  if (start === -1) return null;
  const end = endOfLevel(bytes, start + 1);
  // If exactly one level is open after the usage object, and nothing follows its end, the key belongs to the outermost object.
  const last = end === -1 ? -1 : endOfLevel(bytes, end + 1);
  if (last === -1 || bytes[last] !== CLOSE_BRACE || skipSpace(bytes, last + 1) !== bytes.length) return null;
  if (bytes.includes(METADATA_KEY, 0, "latin1")) return null;
  return parseUsage(bytes, start, end);
}

/** Reads the last usage object, and the first model, in a part of a JSON text. */
export function scanUsage(bytes: Buffer): FoundUsage {
  const start = lastUsageObject(bytes);
  const end = start === -1 ? -1 : endOfLevel(bytes.subarray(0, start + MAX_OBJECT_BYTES), start + 1);
  return { usage: end === -1 ? null : parseUsage(bytes, start, end), model: scanModel(bytes) };
}

export function scanModel(bytes: Buffer): string | null {
  return MODEL.exec(bytes.toString(isUtf8(bytes) ? "utf8" : "latin1"))?.[1] ?? null;
}

/** True when the bytes contain a usage member whose value is an object. */
export function hasUsage(bytes: Buffer): boolean {
  return lastUsageObject(bytes) !== -1;
}

/** Index of the brace that opens the value of the last usage member; -1 when there is none. */
function lastUsageObject(bytes: Buffer): number {
  for (let at = bytes.lastIndexOf(USAGE_MARKER, undefined, "latin1"); at !== -1;) {
    const start = objectOfKey(bytes, at);
    if (start !== -1) return start;
    // Negative offsets count from the end, so the search stops here at the beginning.
    if (at === 0) return -1;
    at = bytes.lastIndexOf(USAGE_MARKER, at - 1, "latin1");
  }
  return -1;
}

/**
 * Index of the brace that opens the value of the usage key at `at`; -1 when the bytes there are no usage key, or its value is no object.
 * Inside a JSON string every quotation mark is escaped, so text about usage is not mistaken for a key.
 */
function objectOfKey(bytes: Buffer, at: number): number {
  if (bytes[at - 1] === BACKSLASH) return -1;
  const length = endOfString(bytes, at) + 1 - at;
  if (length !== USAGE_KEY.length && bytes.toString("latin1", at, at + length) !== METADATA_KEY) return -1;
  const colon = skipSpace(bytes, at + length);
  const start = skipSpace(bytes, colon + 1);
  return bytes[colon] === COLON && bytes[start] === OPEN_BRACE ? start : -1;
}

function parseUsage(bytes: Buffer, start: number, end: number): Usage | null {
  try {
    return readUsageFields(JSON.parse(bytes.toString("utf8", start, end + 1)) as Fields);
  } catch {
    return null;
  }
}
