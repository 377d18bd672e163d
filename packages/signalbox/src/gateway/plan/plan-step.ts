/**
 * Turns a request for one provider into a step: determines the type of the call, checks the body as far as the gateway understands it,
 * and builds the request to send upstream. A plain call has one step, the universal endpoint several.
 * See gateway/README.md.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Clock } from "../../core/clock.ts";
import { CUSTOM_PREFIX, type Provider, type ProviderDirectory } from "../providers/provider.ts";
import type { GatewaySettings } from "../settings/gateway-settings.ts";
import type { ProviderKeys } from "../keys/provider-keys.ts";
import type { ProviderKeyPool } from "../keys/provider-key-pool.ts";
import { tierInHeaders } from "../limits/price-tiers.ts";
import { mayUseStoredKeys } from "../keys/caller-token.ts";
import { StepKeys } from "../keys/step-keys.ts";
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { CallOptions } from "../step/call-options.ts";
import { decodePath } from "./forwarded-request.ts";
import { type BodyFacts, inspectBody, inspectForm, inspectStart, NO_FACTS } from "../step/body-facts.ts";
import { malformed } from "../step/malformed.ts";
import { MAX_MODEL_LENGTH, toModelName } from "../step/model-name.ts";
import { speechModel } from "../step/speech-apis.ts";
import type { RequestType, Step } from "../step/step.ts";
import type { StepRequest } from "./step-request.ts";
import { requestStreamUsage } from "./stream-usage.ts";

export interface StepParts {
  readonly clock: Clock;
  readonly providers: ProviderDirectory;
  /** Whether the gateway asks for the usage of streams whose callers do not. */
  readonly injectsStreamUsage: boolean;
  readonly keys: ProviderKeys;
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
const ECHO = "echo";
const BEDROCK = "aws-bedrock";
const JSON_TYPE = /^application\/(?:[\w.+-]+\+)?json\s*(?:;|$)/i;
const FORM_TYPE = /^multipart\/form-data\s*;/i;
const OPEN_BRACE = 0x7b;
const DEFAULT_RETRY_DELAY_MS = 100;
/** A caller that waits longer for one provider would rather have the error. */
const DEFAULT_MAX_RETRY_WAIT_MS = 10_000;

export function planStep(parts: StepParts, wanted: StepRequest): Step {
  const { provider, path, method, query } = wanted;
  const { gateway } = wanted.context;
  const plain = plainPath(path);
  const requestType = requestTypeOf(method, plain);
  const facts = wanted.facts ?? factsOf(wanted, requestType);
  const { origin, path: upstreamPath } = path.startsWith("/")
    ? provider.locateAtHost(path)
    : provider.locate(path, gateway.accountId);
  const isInjected = parts.injectsStreamUsage && facts.stream === "without_usage" && requestType === "chat";
  const usage = isInjected ? requestStreamUsage(provider, facts.model ?? "", wanted.body) : null;
  const pool = storedKeys(parts.keys, wanted);
  const model =
    toModelName(
      modelOf(provider.modelInPath(plain), facts.model, requestType) ||
        speechModel(provider.slug, query, wanted.body),
    ) ?? "";
  return {
    provider,
    path,
    requestType,
    model,
    maxOutputTokens: facts.maxOutputTokens,
    choices: facts.choices,
    tier:
      facts.tier === "" && provider.slug === BEDROCK ? tierInHeaders(wanted.forwarded.headers) : facts.tier,
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
    policy: toPolicy(wanted.options, gateway.settings),
    translation: wanted.translation ?? null,
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
  const { forwarded, provider } = wanted;
  const { traceparent } = wanted.context;
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
  const { provider, options } = wanted;
  const { gateway, isAuthenticated } = wanted.context;
  if (options.keyAlias === undefined && sendsKey(wanted)) return null;
  const pool = keys.poolFor(gateway, provider, options.keyAlias);
  if (pool === null && gateway.settings.byok_only && needsKey(provider)) {
    throw new SignalboxError("gateway_credential_required", {
      message: `This gateway requires provider credentials: send a key of ${provider.slug}, or store one`,
    });
  }
  if (pool !== null && !mayUseStoredKeys(gateway, isAuthenticated)) {
    throw new SignalboxError("gateway_unauthorized", {
      message: `Stored keys of ${provider.slug} are used only for calls with a token; send one, or set allow_anonymous_keys on the gateway`,
    });
  }
  // The caller's path names the host: the key would go to a server of the caller's choice.
  if (pool !== null && provider.isHostOfCaller) {
    throw malformed(
      `A stored key of ${provider.slug} is sent only to a configured address: set providers.${provider.slug}.baseUrl`,
    );
  }
  return pool;
}

/** Headers of a custom provider contain its credential; a provider inside this process has none. */
export function needsKey({ extraHeaders, slug }: Provider): boolean {
  return extraHeaders.length === 0 && slug !== ECHO;
}

function sendsKey({ forwarded, provider, query }: StepRequest): boolean {
  return forwarded.credential.length > 0 || (provider.acceptsKeyInQuery && /(?:^|&)key=/.test(query));
}

/** Headers that select an account or project belong to the credential: with a stored key the provider would refuse those of the caller. */
const ACCOUNT_HEADERS: ReadonlySet<string> = new Set(["openai-organization", "openai-project"]);

function withoutAccountHeaders(headers: readonly string[]): string[] {
  return headers.filter((_, i) => !ACCOUNT_HEADERS.has((headers[i - (i % 2)] ?? "").toLowerCase()));
}

function factsOf(wanted: StepRequest, requestType: RequestType): BodyFacts {
  const { body, contentType, provider } = wanted;
  if (!CHECKED_TYPES.has(requestType)) {
    // The provider judges the bodies of other types; the model and what bounds the output are read, if they are there.
    if (body.kind !== "whole" || wanted.isEncoded === true) return NO_FACTS;
    if (FORM_TYPE.test(contentType ?? "")) return inspectForm(body.bytes);
    return body.bytes[0] === OPEN_BRACE || JSON_TYPE.test(contentType ?? "")
      ? inspectBody(body.bytes, false)
      : NO_FACTS;
  }
  // A compressed body is forwarded as it is.
  if (wanted.isEncoded === true) return NO_FACTS;
  if (requestType === "chat" && contentType !== undefined && !JSON_TYPE.test(contentType)) {
    throw malformed("Content-Type must be application/json");
  }
  if (body.kind === "none") throw malformed("The body is empty");
  // Only the beginning of a streamed body is known, so the provider judges it.
  if (body.kind === "streamed") return inspectStart(body.start);
  const facts = inspectBody(body.bytes, contentType === undefined || JSON_TYPE.test(contentType));
  if (facts.model === null && needsModel(requestType, provider, wanted.path)) {
    throw malformed(`model is required and must be a string of at most ${MAX_MODEL_LENGTH} characters`);
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
