/**
 * Reads token counts from a model's response: from parsed objects, and from bytes that are not parsed whole.
 *
 * The field names decide which family of APIs a response belongs to, not the server: one server may use several, and the families do
 * not overlap. The counts are unified:
 * 1. `tokensIn` and `tokensOut` are totals. Anthropic and Bedrock count cached input separately from `input_tokens`, Gemini counts
 *    thoughts separately from candidates, and xAI counts reasoning separately from `completion_tokens`; these are added.
 * 2. A count that is missing, negative or not an integer is 0.
 * See README.md.
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
import { type Fields, isFields } from "../../core/fields.ts";
import { readConnectors, readTools, scanTools, TOOL_MARKERS } from "./read-tools.ts";
import { addTools, addUsage, NO_USAGE, type Usage, type UsageRound } from "./usage.ts";

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
  const named = object["model"] ?? object["modelVersion"];
  const model = typeof named === "string" && named !== "" ? named : null;
  const usage = usageOf(object);
  return { usage: usage === null ? null : withSurroundings(usage, object, model), model };
}

/** What stands beside the usage: OpenAI's tier, and the searches and other tools of OpenAI Responses, Gemini and Anthropic, which no usage counts. */
function withSurroundings(usage: Usage, object: Fields, model: string | null): Usage {
  const tier = readTier(object);
  const { output, candidates } = object;
  const tools = readTools(object, fromInputOutput);
  if (tier === "" && tools === null && !Array.isArray(output) && !Array.isArray(candidates)) return usage;
  const searches = Array.isArray(candidates)
    ? groundingSearches(candidates, model)
    : countItems(output, "web_search_call");
  return {
    ...usage,
    tier: tier === "" ? usage.tier : tier,
    tools: addTools(usage.tools, tools),
    searches: usage.searches + searches,
    fileSearches: usage.fileSearches + countItems(output, "file_search_call"),
  };
}

/** Items of an answer of OpenAI Responses. Of web searches, opening a page and searching in it are not billed. */
function countItems(output: unknown, type: string): number {
  let found = 0;
  for (const item of Array.isArray(output) ? (output as unknown[]) : []) {
    if (!isFields(item) || item["type"] !== type) continue;
    const action = fieldsOf(item, "action")?.["type"];
    if (action === undefined || action === "search") found += 1;
  }
  return found;
}

/** Gemini 3 and later are billed for each query, earlier ones for each answer with any. */
function groundingSearches(candidates: readonly unknown[], model: string | null): number {
  let queries = 0;
  for (const candidate of candidates) {
    const found = isFields(candidate)
      ? fieldsOf(candidate, "groundingMetadata")?.["webSearchQueries"]
      : undefined;
    if (Array.isArray(found)) queries += found.length;
  }
  return /gemini-[12]\b/.test(model ?? "") ? Math.min(queries, 1) : queries;
}

function usageOf(object: Fields): Usage | null {
  const gemini = fieldsOf(object, "usageMetadata");
  if (gemini !== undefined) return readUsageFields(gemini);
  const usage = fieldsOf(object, "usage");
  if (usage !== undefined) return readUsageFields(usage);
  // Cohere's embeddings and rankings.
  const billed = fieldsOf(fieldsOf(object, "meta") ?? EMPTY, "billed_units");
  if (billed !== undefined) return fromBilledUnits(billed);
  const pages = count(fieldsOf(object, "usage_info") ?? EMPTY, "pages_processed");
  if (pages > 0) return { ...NO_USAGE, pages };
  // A transcription without usage states how long its sound is.
  const seconds = soundSeconds(object);
  if (seconds !== null) return { ...NO_USAGE, seconds };
  // Ollama's native API, and Llama's at Bedrock, have the counts at the top level.
  return "eval_count" in object || "prompt_eval_count" in object || "generation_token_count" in object
    ? readUsageFields(object)
    : null;
}

/** The length of the sound of a transcription: OpenAI's and Cartesia's, Deepgram's, and ElevenLabs', whose last word tells it. */
function soundSeconds(object: Fields): number | null {
  const { duration, text, results, metadata, words, language_code: language } = object;
  if (isPositive(duration) && text !== undefined) return duration;
  if (isFields(results) && isFields(metadata))
    return isPositive(metadata["duration"]) ? metadata["duration"] : null;
  const last: unknown = Array.isArray(words) && language !== undefined ? words.at(-1) : undefined;
  return isFields(last) && isPositive(last["end"]) ? last["end"] : null;
}

/** Reads the object that contains the counts and the provider's own price; null when it contains no known count. */
function readUsageFields(usage: Fields): Usage | null {
  const counts = readCounts(usage);
  const reportedCost = counts === null ? null : reportedCostOf(usage);
  return counts === null || reportedCost === null ? counts : { ...counts, reportedCost };
}

function readCounts(usage: Fields): Usage | null {
  if ("promptTokenCount" in usage || "totalTokenCount" in usage) return fromGemini(usage);
  if ("prompt_tokens" in usage || "completion_tokens" in usage) return fromChatCompletions(usage);
  if ("input_tokens" in usage || "output_tokens" in usage) return fromInputOutput(usage);
  if ("inputTokens" in usage || "outputTokens" in usage) return fromBedrock(usage);
  if ("inputTokenCount" in usage || "outputTokenCount" in usage) return fromInvocationMetrics(usage);
  if ("generation_token_count" in usage)
    return total(count(usage, "prompt_token_count"), count(usage, "generation_token_count"));
  if ("eval_count" in usage || "prompt_eval_count" in usage) {
    return total(count(usage, "prompt_eval_count"), count(usage, "eval_count"));
  }
  if ("pages_processed" in usage) return { ...NO_USAGE, pages: count(usage, "pages_processed") };
  if (isPositive(usage["seconds"])) return { ...NO_USAGE, seconds: usage["seconds"] };
  // Embeddings and rankings of Voyage and Jina, which write nothing.
  if ("total_tokens" in usage) return total(count(usage, "total_tokens"), 0);
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
  // Every member by name: beginning with a copy of `NO_USAGE` costs 2 % of a JSON call.
  return {
    tokensIn,
    tokensOut: isReasoningSeparate ? tokensOut + reasoning : tokensOut,
    tokensInCached: count(input, "cached_tokens") || count(usage, "prompt_cache_hit_tokens"),
    tokensInCacheWrite: count(input, "cache_write_tokens"),
    tokensInCacheWrite1h: 0,
    tokensOutReasoning: reasoning,
    tokensInAudio: count(input, "audio_tokens"),
    tokensInImage: count(input, "image_tokens"),
    tokensOutAudio: count(output, "audio_tokens"),
    tokensOutImage: count(output, "image_tokens"),
    searches: count(usage, "num_search_queries") || count(usage, "num_sources_used"),
    fileSearches: 0,
    seconds: 0,
    pages: 0,
    isAnnotated: false,
    characters: 0,
    images: 0,
    imageForm: "",
    rankings: 0,
    tools: readConnectors(usage),
    tier: "",
    rounds: null,
    reportedCost: null,
  };
}

/** OpenAI Responses (details in nested objects, totals inclusive) and Anthropic Messages (cached input counted separately). */
function fromInputOutput(usage: Fields): Usage {
  // OpenAI's Realtime API has the details in the singular.
  const input = fieldsOf(usage, "input_tokens_details") ?? fieldsOf(usage, "input_token_details") ?? EMPTY;
  const output = fieldsOf(usage, "output_tokens_details") ?? fieldsOf(usage, "output_token_details") ?? EMPTY;
  const cached = fieldsOf(input, "cached_tokens_details") ?? EMPTY;
  const cacheRead = count(usage, "cache_read_input_tokens");
  const cacheWrite = count(usage, "cache_creation_input_tokens");
  const writes = fieldsOf(usage, "cache_creation") ?? EMPTY;
  const tools = fieldsOf(usage, "server_tool_use") ?? EMPTY;
  const counted: Usage = {
    tokensIn: count(usage, "input_tokens") + cacheRead + cacheWrite,
    tokensOut: count(usage, "output_tokens"),
    tokensInCached: cacheRead || count(input, "cached_tokens"),
    tokensInCacheWrite: cacheWrite || count(input, "cache_write_tokens"),
    tokensInCacheWrite1h: Math.min(cacheWrite, count(writes, "ephemeral_1h_input_tokens")),
    tokensOutReasoning: count(output, "reasoning_tokens") || count(output, "thinking_tokens"),
    tokensInAudio: Math.max(0, count(input, "audio_tokens") - count(cached, "audio_tokens")),
    tokensInImage: Math.max(0, count(input, "image_tokens") - count(cached, "image_tokens")),
    tokensOutAudio: count(output, "audio_tokens"),
    tokensOutImage: count(output, "image_tokens"),
    searches: count(tools, "web_search_requests"),
    fileSearches: 0,
    seconds: 0,
    pages: 0,
    isAnnotated: false,
    characters: 0,
    images: 0,
    imageForm: "",
    rankings: 0,
    tools: null,
    tier: readTier(usage),
    rounds: null,
    reportedCost: null,
  };
  return usage["iterations"] === undefined ? counted : sumOfRounds(counted, usage["iterations"]);
}

/** More than any answer has. */
const MAX_ROUNDS = 1000;

/**
 * Anthropic lists the rounds of an answer in `iterations`. The counts beside the list leave out compactions and the rounds of other models (the advisor
 * tool), which are billed, each at the price of its own model.
 */
function sumOfRounds(counted: Usage, list: unknown): Usage {
  const { tier, searches } = counted;
  const rounds: UsageRound[] = [];
  for (const item of Array.isArray(list) ? (list as unknown[]).slice(0, MAX_ROUNDS) : []) {
    if (!isFields(item)) continue;
    const model = item["model"];
    const usage = { ...fromInputOutput({ ...item, iterations: undefined }), tier, searches: 0 };
    rounds.push({ model: typeof model === "string" ? model : null, usage });
  }
  if (rounds.length === 0) return counted;
  return { ...rounds.map(({ usage }) => usage).reduce(addUsage), tier, searches, rounds };
}

function fromGemini(usage: Fields): Usage {
  const thoughts = count(usage, "thoughtsTokenCount");
  const cached = modalities(usage["cacheTokensDetails"]);
  const input = modalities(usage["promptTokensDetails"]);
  // The Live API calls the answer a response, the other methods call it a candidate.
  const output = modalities(usage["candidatesTokensDetails"] ?? usage["responseTokensDetails"]);
  return {
    ...NO_USAGE,
    tokensIn: count(usage, "promptTokenCount") + count(usage, "toolUsePromptTokenCount"),
    tokensOut: (count(usage, "candidatesTokenCount") || count(usage, "responseTokenCount")) + thoughts,
    tokensInCached: count(usage, "cachedContentTokenCount"),
    tokensOutReasoning: thoughts,
    tokensInAudio: Math.max(0, input.audio - cached.audio),
    tokensInImage: Math.max(0, input.image - cached.image),
    tokensOutAudio: output.audio,
    tokensOutImage: output.image,
    tier: GEMINI_TIERS.get(usage["trafficType"]) ?? "",
  };
}

const GEMINI_TIERS: ReadonlyMap<unknown, string> = new Map([
  ["ON_DEMAND_PRIORITY", "priority"],
  ["ON_DEMAND_FLEX", "flex"],
]);

/** Gemini lists the counts of each modality: `[{modality: "AUDIO", tokenCount: 3}]`. */
function modalities(details: unknown): { readonly audio: number; readonly image: number } {
  let audio = 0;
  let image = 0;
  for (const detail of Array.isArray(details) ? (details as unknown[]) : []) {
    if (!isFields(detail)) continue;
    if (detail["modality"] === "AUDIO") audio += count(detail, "tokenCount");
    else if (detail["modality"] === "IMAGE") image += count(detail, "tokenCount");
  }
  return { audio, image };
}

function fromBedrock(usage: Fields): Usage {
  const cacheRead = count(usage, "cacheReadInputTokens");
  const cacheWrite = count(usage, "cacheWriteInputTokens");
  let cacheWrite1h = 0;
  const writes = usage["cacheDetails"];
  for (const write of Array.isArray(writes) ? (writes as unknown[]) : []) {
    if (isFields(write) && write["ttl"] === "1h") cacheWrite1h += count(write, "inputTokens");
  }
  return {
    ...total(count(usage, "inputTokens") + cacheRead + cacheWrite, count(usage, "outputTokens")),
    tokensInCached: cacheRead,
    tokensInCacheWrite: cacheWrite,
    tokensInCacheWrite1h: Math.min(cacheWrite, cacheWrite1h),
  };
}

function fromBilledUnits(billed: Fields): Usage {
  return {
    ...total(count(billed, "input_tokens"), count(billed, "output_tokens")),
    rankings: count(billed, "search_units"),
  };
}

/** What Bedrock counts itself, whatever the model. */
function fromInvocationMetrics(metrics: Fields): Usage {
  const cacheRead = count(metrics, "cacheReadInputTokenCount");
  const cacheWrite = count(metrics, "cacheWriteInputTokenCount");
  return {
    ...total(count(metrics, "inputTokenCount") + cacheRead + cacheWrite, count(metrics, "outputTokenCount")),
    tokensInCached: cacheRead,
    tokensInCacheWrite: cacheWrite,
  };
}

/** Names of the usual price; `scale`, `reserved` and Anthropic's `standard_only` are paid in advance, or are the usual tier. */
const USUAL: ReadonlySet<unknown> = new Set([
  "",
  "default",
  "standard",
  "standard_only",
  "auto",
  "scale",
  "reserved",
  "on_demand",
  "global",
  "not_available",
]);

/**
 * What changes the price of a token, as a request or a response names it: a service tier (`priority`; Bedrock's Converse has it in an object), Anthropic's
 * speed (`speed:fast`) and place (`geo:us`), Bedrock's latency (`latency:optimized`), joined by `+`. Names that are not known are kept: whoever computes
 * a price decides about them.
 */
export function readTier(fields: Fields): string {
  const { service_tier: tier, serviceTier, performanceConfig, speed, inference_geo: geo } = fields;
  let found = typeof tier === "string" && !USUAL.has(tier) ? tier : "";
  if (isFields(serviceTier)) found = joined(found, "", serviceTier["type"]);
  found = joined(found, "speed:", speed);
  found = joined(found, "geo:", geo);
  return isFields(performanceConfig) ? joined(found, "latency:", performanceConfig["latency"]) : found;
}

function joined(names: string, kind: string, name: unknown): string {
  if (typeof name !== "string" || USUAL.has(name)) return names;
  return `${names}${names === "" ? "" : "+"}${kind}${name}`;
}

/** xAI counts in ten-billionths of a dollar. */
const DOLLARS_PER_TICK = 1e-10;

/** OpenRouter and others state a number, Perplexity an object, xAI ticks. A caller's own key at OpenRouter is billed by its owner, too. */
function reportedCostOf(usage: Fields): number | null {
  const cost = usage["cost"];
  const ticks = usage["cost_in_usd_ticks"];
  if (isPrice(ticks)) return ticks * DOLLARS_PER_TICK;
  if (isFields(cost)) return isPrice(cost["total_cost"]) ? cost["total_cost"] : null;
  if (!isPrice(cost)) return null;
  const upstream =
    usage["is_byok"] === true ? fieldsOf(usage, "cost_details")?.["upstream_inference_cost"] : 0;
  return cost + (isPrice(upstream) ? upstream : 0);
}

function isPositive(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value > 0;
}

function isPrice(value: unknown): value is number {
  return typeof value === "number" && Number.isFinite(value) && value >= 0;
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

const USAGE_KEY = '"usage"';
/** Takes precedence over `usage` in an object that has both. */
const METADATA_KEY = '"usageMetadata"';
/** Mistral's OCR. */
const INFO_KEY = '"usage_info"';
/** What the keys begin with. */
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
  if (bytes.includes(METADATA_KEY, 0, "latin1") || namesTier(bytes)) return null;
  if (TOOL_MARKERS.some((marker) => bytes.includes(marker, 0, "latin1"))) return null;
  return parseUsage(bytes, start, end);
}

const TIER_KEY = '"service_tier"';
/** What is read of a value; longer names are not usual. */
const TIER_VALUE_BYTES = 40;
const USUAL_TIER = /^\s*:\s*(?:null|"(?:default|standard|auto|on_demand)")/;

const OTHER_TIER_KEYS = ['"serviceTier"', '"performanceConfig"'];

/** True when the bytes may name a tier with its own price, beside the usage or elsewhere. */
function namesTier(bytes: Buffer): boolean {
  if (OTHER_TIER_KEYS.some((key) => bytes.includes(key, 0, "latin1"))) return true;
  for (let at = bytes.lastIndexOf(TIER_KEY, undefined, "latin1"); at !== -1;) {
    const value = bytes.toString("latin1", at + TIER_KEY.length, at + TIER_KEY.length + TIER_VALUE_BYTES);
    if (!USUAL_TIER.test(value)) return true;
    if (at === 0) return false;
    at = bytes.lastIndexOf(TIER_KEY, at - 1, "latin1");
  }
  return false;
}

/** Reads the last usage object, and the first model, in a part of a JSON text. */
export function scanUsage(bytes: Buffer): FoundUsage {
  const start = lastUsageObject(bytes);
  const end = start === -1 ? -1 : endOfLevel(bytes.subarray(0, start + MAX_OBJECT_BYTES), start + 1);
  const usage = end === -1 ? null : parseUsage(bytes, start, end);
  return { usage: usage === null ? null : withScannedTools(usage, bytes), model: scanModel(bytes) };
}

const RESPONSES_TOOLS = /"tools"\s*:\s*\[\s*\{/;

function withScannedTools(usage: Usage, bytes: Buffer): Usage {
  const text = bytes.toString("latin1");
  if (!RESPONSES_TOOLS.test(text)) return usage;
  const { tools, searches } = scanTools(text, fromInputOutput);
  if (tools === null && searches === null) return usage;
  return { ...usage, tools, searches: searches ?? usage.searches };
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
  if (length !== USAGE_KEY.length) {
    const key = bytes.toString("latin1", at, at + length);
    if (key !== METADATA_KEY && key !== INFO_KEY) return -1;
  }
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
