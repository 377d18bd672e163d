/**
 * Turns a request for one provider into a step: determines the type of the call, checks the body as far as the gateway understands it,
 * and builds the request to send upstream. A plain call has one step, the universal endpoint several.
 * See gateway/README.md.
 */
import { SignalboxError } from "@signalbox/protocol";
import {
  readMembers,
  type RequestBody,
  type ResponseHead,
  type UpstreamRequest,
} from "../../engines/relay/index.ts";
import { CUSTOM_PREFIX, type Provider, type ProviderDirectory } from "../providers/provider.ts";
import type { Gateway } from "../settings/gateway.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import type { ProviderKeys } from "../settings/provider-keys.ts";
import type { ProviderKeyPool } from "../keys/provider-key-pool.ts";
import { StepKeys } from "../keys/step-keys.ts";
import type { AttemptPolicy } from "./attempt-policy.ts";
import type { CallOptions } from "./call-options.ts";
import type { DoorStep } from "./door-step.ts";
import { decodePath, type ForwardedHeaders } from "./forwarded-request.ts";
import type { KeyPool } from "./key-pool.ts";
import { requestStreamUsage, type UsageEventRemover } from "./stream-usage.ts";

export interface Step {
  readonly provider: Provider;
  /** After the provider segment, without the query. */
  readonly path: string;
  readonly requestType: RequestType;
  /** As the request names it; empty when only the response does. */
  readonly model: string;
  /** The output limit that the request sets, for each answer that it asks for; null when it sets none. */
  readonly maxOutputTokens: number | null;
  /** How many answers the request asks for. */
  readonly choices: number;
  /** The service tier that the request asks for; empty for the usual one. */
  readonly tier: string;
  readonly upstream: UpstreamRequest;
  /** Stored keys of which each attempt picks one; null when the credential is already in `upstream`. */
  readonly keys: KeyPool | null;
  /** The provider sees the caller's own credential, and none of the operator. */
  readonly hasOwnKey: boolean;
  /** Tells apart, for the cache, steps that use different stored keys; empty without stored keys. */
  readonly keyScope: string;
  readonly policy: AttemptPolicy;
  /** Null for calls that did not come through a unified door. */
  readonly door: DoorStep | null;
  /** The position in the caller's list, when a strategy has changed the order. */
  readonly place?: number;
  /** Removes from the response what only the gateway asked for; null when it passes as it is. */
  readonly filter: ((head: ResponseHead) => UsageEventRemover | null) | null;
}

/** The type of a call, for the log and for the checks of its body; empty when the path is not known. */
export type RequestType =
  | "chat"
  | "completions"
  | "responses"
  | "messages"
  | "embeddings"
  | "generate_content"
  | "images"
  | "audio"
  | "moderations"
  | "models"
  | "realtime"
  | "";

export interface StepParts {
  readonly providers: ProviderDirectory;
  /** Whether the gateway asks for the usage of streams whose callers do not. */
  readonly injectsStreamUsage: boolean;
  readonly keys: ProviderKeys;
}

export interface StepRequest {
  readonly gateway: Gateway;
  readonly provider: Provider;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly forwarded: Omit<ForwardedHeaders, "options">;
  /** Continues the caller's trace; null when the caller sent none. */
  readonly traceparent: string | null;
  readonly contentType: string | undefined;
  readonly isEncoded: boolean;
  readonly body: RequestBody;
  readonly options: CallOptions;
  readonly door: DoorStep | null;
  /** Already read from the body; null leaves it to `planStep`. */
  readonly facts: BodyFacts | null;
  /** The caller has sent a valid token. */
  readonly isAuthenticated: boolean;
}

/** Of requests with POST. */
const TYPE_BY_PATH: readonly { readonly path: RegExp; readonly type: RequestType }[] = [
  { path: /(^|\/)chat\/completions$/i, type: "chat" },
  { path: /(^|\/)completions$/i, type: "completions" },
  { path: /(^|\/)responses$/i, type: "responses" },
  { path: /(^|\/)messages$/i, type: "messages" },
  { path: /(^|\/)embeddings$/i, type: "embeddings" },
  { path: /:(stream)?generateContent$/i, type: "generate_content" },
  { path: /:(batch)?embedContents?$/i, type: "embeddings" },
  { path: /(^|\/)images\//i, type: "images" },
  { path: /(^|\/)audio\//i, type: "audio" },
  { path: /(^|\/)moderations$/i, type: "moderations" },
];

/** Types whose JSON bodies the gateway understands well enough to refuse a malformed one. */
const CHECKED_TYPES: ReadonlySet<RequestType> = new Set([
  "chat",
  "completions",
  "responses",
  "messages",
  "embeddings",
]);

const NO_HEADERS: readonly string[] = [];
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const DEFAULT_RETRY_DELAY_MS = 100;
/** A caller that waits longer for one provider would rather hear of the limit. */
const DEFAULT_MAX_RETRY_WAIT_MS = 10_000;

export function planStep(parts: StepParts, wanted: StepRequest): Step {
  const { provider, path, method, query } = wanted;
  const plain = plainPath(path);
  const requestType = requestTypeOf(method, plain);
  const facts = wanted.facts ?? factsOf(wanted, requestType);
  const { origin, path: upstreamPath } = path.startsWith("/")
    ? provider.locateAtHost(path)
    : provider.locate(path, wanted.gateway.accountId);
  const isInjected = parts.injectsStreamUsage && facts.stream === "without_usage" && requestType === "chat";
  const usage = isInjected ? requestStreamUsage(provider, facts.model ?? "", wanted.body) : null;
  const pool = storedKeys(parts.keys, wanted);
  const model = modelOf(provider.modelInPath(plain), facts.model, requestType);
  return {
    provider,
    path,
    requestType,
    model,
    maxOutputTokens: facts.maxOutputTokens,
    choices: facts.choices,
    tier: facts.tier,
    upstream: {
      origin,
      method,
      target: query === "" ? upstreamPath : `${upstreamPath}?${query}`,
      headers: upstreamHeaders(wanted, pool),
      body: usage?.body ?? wanted.body,
    },
    keys:
      pool === null
        ? null
        : new StepKeys(pool, { providerSlug: provider.slug, model, session: wanted.options.sessionId }),
    hasOwnKey: pool === null && sendsKey(wanted) && provider.extraHeaders.length === 0,
    keyScope: pool?.scope ?? "",
    policy: toPolicy(wanted.options, wanted.gateway.settings),
    door: wanted.door,
    filter: usage?.filter ?? null,
  };
}

/** Gemini's native API ignores a model in the body. Azure's deployments have names of their own, so the body says more. */
function modelOf(inPath: string | null, inBody: string | null, requestType: RequestType): string {
  return (requestType === "generate_content" ? (inPath ?? inBody) : (inBody ?? inPath)) ?? "";
}

/** The path as most servers read it: decoded, with single slashes, none at the end. What is forwarded stays as it was sent. */
function plainPath(path: string): string {
  const decoded = path.includes("%") ? decodePath(path) : path;
  if (!decoded.includes("//") && !decoded.endsWith("/") && !decoded.startsWith("/")) return decoded;
  return decoded.replaceAll(/\/{2,}/g, "/").replaceAll(/^\/|\/$/g, "");
}

/** Only a read lists models: some providers run a model that is posted to `models/{name}`. */
function requestTypeOf(method: string, path: string): RequestType {
  if (method === "GET" || method === "HEAD") return path.endsWith("models") ? "models" : "";
  if (method !== "POST") return "";
  return TYPE_BY_PATH.find((known) => known.path.test(path))?.type ?? "";
}

function upstreamHeaders(wanted: StepRequest, pool: ProviderKeyPool | null): string[] {
  const { forwarded, provider, traceparent } = wanted;
  return [
    ...(pool === null ? forwarded.headers : withoutAccountHeaders(forwarded.headers)),
    // Usage is read from the response as it passes, so the response must not be compressed.
    "accept-encoding",
    "identity",
    ...(traceparent === null ? NO_HEADERS : ["traceparent", traceparent]),
    ...(pool === null ? forwarded.credential : NO_HEADERS),
    ...provider.extraHeaders,
  ];
}

/** The stored keys that replace the caller's credential: when the caller sent none, or names a stored key. */
function storedKeys(keys: ProviderKeys, wanted: StepRequest): ProviderKeyPool | null {
  const { gateway, provider, options, isAuthenticated } = wanted;
  if (options.keyAlias === undefined && sendsKey(wanted)) return null;
  const pool = keys.poolFor(gateway, provider, options.keyAlias);
  // A stored key is the operator's money; without a token, every client that reaches the listener could spend it.
  if (pool !== null && !mayUseStoredKeys(gateway, isAuthenticated)) {
    throw new SignalboxError("gateway_unauthorized", {
      message: `Stored keys of ${provider.slug} are used only for calls with a token; send one, or set allow_anonymous_keys on the gateway`,
    });
  }
  // The caller's path names the host: the key would go to whomever the caller chooses.
  if (pool !== null && provider.isHostOfCaller) {
    throw malformed(
      `A stored key of ${provider.slug} is sent only to a configured address: set providers.${provider.slug}.baseUrl`,
    );
  }
  return pool;
}

function sendsKey({ forwarded, provider, query }: StepRequest): boolean {
  return forwarded.credential.length > 0 || (provider.acceptsKeyInQuery && /(?:^|&)key=/.test(query));
}

export function mayUseStoredKeys({ settings }: Gateway, isAuthenticated: boolean): boolean {
  return isAuthenticated || settings.allow_anonymous_keys;
}

/** Headers that select an account or project belong to the credential: with a stored key the provider would refuse those of the caller. */
const ACCOUNT_HEADERS: ReadonlySet<string> = new Set(["openai-organization", "openai-project"]);

function withoutAccountHeaders(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !ACCOUNT_HEADERS.has((headers[i - (i % 2)] ?? "").toLowerCase()));
}

function factsOf(wanted: StepRequest, requestType: RequestType): BodyFacts {
  const { body, contentType, provider } = wanted;
  if (!CHECKED_TYPES.has(requestType)) {
    // The provider judges the bodies of other types; of a Gemini body the output limit is read.
    return body.kind === "whole" && requestType === "generate_content" && !wanted.isEncoded
      ? inspectBody(body.bytes, false)
      : NO_FACTS;
  }
  // A compressed body is forwarded as it is.
  if (wanted.isEncoded) return NO_FACTS;
  if (requestType === "chat" && contentType !== undefined && !JSON_TYPE.test(contentType)) {
    throw malformed("Content-Type must be application/json");
  }
  if (body.kind === "none") throw malformed("The body is empty");
  // Only the beginning of a streamed body is known, so the provider judges it.
  if (body.kind === "streamed") return inspectStart(body.start);
  const facts = inspectBody(body.bytes, contentType === undefined || JSON_TYPE.test(contentType));
  if (facts.model === null && needsModel(requestType, provider, wanted.path)) {
    throw malformed("model is required and must be a string");
  }
  return facts;
}

/** A custom provider may serve a single model, and then needs no name. */
function needsModel(requestType: RequestType, provider: Provider, path: string): boolean {
  return (
    (requestType === "chat" || requestType === "messages" || requestType === "embeddings") &&
    !provider.slug.startsWith(CUSTOM_PREFIX) &&
    provider.modelInPath(path) === null
  );
}

function toPolicy(options: CallOptions, settings: GatewaySettings): AttemptPolicy {
  return {
    requestTimeoutMs: options.requestTimeoutMs ?? null,
    maxAttempts: options.maxAttempts ?? settings.retry_max_attempts ?? 1,
    retryDelayMs: options.retryDelayMs ?? settings.retry_delay ?? DEFAULT_RETRY_DELAY_MS,
    backoff: options.backoff ?? settings.retry_backoff ?? "constant",
    maxRetryWaitMs: options.maxRetryWaitMs ?? DEFAULT_MAX_RETRY_WAIT_MS,
    firstTokenTimeoutMs: options.firstTokenTimeoutMs ?? null,
    stallTimeoutMs: options.stallTimeoutMs ?? null,
    holdsResponse: options.holdsResponse ?? false,
    fallbackOn: options.fallbackOn ?? null,
    hedgeAfterMs: options.hedgeAfterMs ?? null,
    weight: options.weight ?? 1,
  };
}

/** What the gateway reads from a JSON request body. */
export interface BodyFacts {
  readonly model: string | null;
  readonly maxOutputTokens: number | null;
  readonly choices: number;
  readonly tier: string;
  /** `without_usage`: a stream whose caller does not ask for its usage. */
  readonly stream: "none" | "with_usage" | "without_usage";
}

export const NO_FACTS: BodyFacts = {
  model: null,
  maxOutputTokens: null,
  choices: 1,
  tier: "",
  stream: "none",
};

/** Larger bodies (long conversations, images) are scanned: parsing megabytes would delay every other call. */
const PARSE_LIMIT_BYTES = 256 * 1024;
/**
 * Members of all APIs that say how much a request may use. `output`: a limit of each answer; of several the largest counts, because a provider may
 * ignore the others. `choices`: how many answers; `best_of` are written and billed, though one is returned. `nested`: an object that contains
 * such members (Gemini's, Bedrock's, Ollama's).
 */
const COUNTS: ReadonlyMap<string, "output" | "choices" | "nested"> = new Map([
  ["max_completion_tokens", "output"],
  ["max_output_tokens", "output"],
  ["max_tokens", "output"],
  ["maxOutputTokens", "output"],
  ["maxTokens", "output"],
  ["max_tokens_to_sample", "output"],
  ["num_predict", "output"],
  ["n", "choices"],
  ["best_of", "choices"],
  ["candidateCount", "choices"],
  ["num_generations", "choices"],
  ["generationConfig", "nested"],
  ["generation_config", "nested"],
  ["inferenceConfig", "nested"],
  ["options", "nested"],
]);
const WANTED: ReadonlySet<string> = new Set([
  "model",
  "stream",
  "stream_options",
  "service_tier",
  ...COUNTS.keys(),
]);

/** Throws `gateway_malformed_request` when the body is not a JSON object although `mustBeJson` requires one. */
export function inspectBody(bytes: Buffer, mustBeJson: boolean): BodyFacts {
  if (bytes.length > PARSE_LIMIT_BYTES) return inspectStart(bytes);
  let value: unknown;
  try {
    value = JSON.parse(bytes.toString("utf8"));
  } catch {
    if (mustBeJson) throw malformed("The body is not valid JSON");
    return NO_FACTS;
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    if (mustBeJson) throw malformed("The body must be a JSON object");
    return NO_FACTS;
  }
  return toFacts(value as Record<string, unknown>);
}

/** Reads the beginning of a JSON object. */
export function inspectStart(bytes: Buffer): BodyFacts {
  return toFacts(Object.fromEntries(readMembers(bytes, WANTED)));
}

export function malformed(message: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message });
}

export function toFacts(fields: Fields): BodyFacts {
  const { model, stream, stream_options: streamOptions, service_tier: tier } = fields;
  const { maxOutputTokens, choices } = readCounts(fields);
  const asksForUsage = isFields(streamOptions) && streamOptions["include_usage"] === true;
  return {
    model: typeof model === "string" ? model : null,
    maxOutputTokens,
    choices,
    tier: tier === "priority" || tier === "flex" ? tier : "",
    stream: stream !== true ? "none" : asksForUsage ? "with_usage" : "without_usage",
  };
}

type Fields = Readonly<Record<string, unknown>>;

interface Counts {
  readonly maxOutputTokens: number | null;
  readonly choices: number;
}

/** A body has few members, and counts have many names: the members are looked up among the names, not the names in the body. */
function readCounts(fields: Fields, isNested = false): Counts {
  let maxOutputTokens: number | null = null;
  let choices = 1;
  for (const name in fields) {
    const kind = COUNTS.get(name);
    if (kind === undefined) continue;
    const value = fields[name];
    if (kind === "nested") {
      const inner = !isNested && isFields(value) ? readCounts(value, true) : null;
      maxOutputTokens = larger(maxOutputTokens, inner?.maxOutputTokens ?? null);
      choices = Math.max(choices, inner?.choices ?? 1);
    } else if (typeof value === "number" && value >= 0) {
      // A negative count means "no limit" at some providers.
      if (kind === "output") maxOutputTokens = larger(maxOutputTokens, Math.ceil(value));
      else choices = Math.max(choices, Math.ceil(value));
    }
  }
  return { maxOutputTokens, choices };
}

function larger(a: number | null, b: number | null): number | null {
  return a === null || (b !== null && b > a) ? b : a;
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
