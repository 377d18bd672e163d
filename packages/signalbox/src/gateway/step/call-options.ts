/**
 * Options that a caller sets for one call in `gw-aig-…` headers (or `cf-aig-…`, the names of the hosted original). Steps of the universal
 * endpoint have the same headers, and a `config` object for some of them.
 */
import { SignalboxError } from "@signalbox/protocol";
import { PII_KINDS, RESERVED_METADATA_PREFIX, SECRET_KINDS } from "../../accounts/index.ts";
import { parseKeepingDigits } from "../../core/large-integers.ts";
import {
  type Backoff,
  MAX_ATTEMPTS,
  MAX_CACHE_TTL_S,
  MAX_RETRY_DELAY_MS,
} from "../settings/gateway-settings.ts";
import type { FallbackCause } from "./attempt-policy.ts";

export interface CallOptions {
  readonly skipCache?: boolean;
  readonly cacheTtlS?: number;
  readonly cacheKey?: string;
  readonly collectLog?: boolean;
  readonly collectLogPayload?: boolean;
  /** Serialised flat JSON object. */
  readonly metadata?: string;
  readonly customCost?: CustomCost;
  readonly eventId?: string;
  readonly requestTimeoutMs?: number;
  readonly maxAttempts?: number;
  readonly retryDelayMs?: number;
  readonly backoff?: Backoff;
  readonly keyAlias?: string;
  /** Leave out what the provider's dialect cannot express, instead of refusing the call. */
  readonly dropParams?: boolean;
  readonly maxRetryWaitMs?: number;
  readonly firstTokenTimeoutMs?: number;
  readonly stallTimeoutMs?: number;
  readonly holdsResponse?: boolean;
  readonly fallbackOn?: readonly FallbackCause[];
  readonly hedgeAfterMs?: number;
  readonly strategy?: Strategy;
  readonly weight?: number;
  /** Calls with the same session go to the same target under the strategy `sticky`, and take the same way through a route. */
  readonly sessionId?: string;
  /** One input of a user and what follows it: the auto router keeps its model. */
  readonly turnId?: string;
  /** False: the auto router chooses anew for each call. */
  readonly hasSessionAffinity?: boolean;
  /** Names and patterns that narrow the models of the auto router. */
  readonly allowedModels?: readonly string[];
  readonly allowedProviders?: readonly string[];
  /** Guardrails beside those that apply anyway: `pii=mask,secrets=block`. */
  readonly guardrails?: string;
  /** The stream of the response can be read again after its connection has closed. */
  readonly isResumable?: boolean;
  /** The trace and the span that the span of the call belongs to, for callers that cannot send `traceparent`. */
  readonly otelTraceId?: string;
  readonly otelParentSpanId?: string;
}

/** In which order the steps of a call are tried. */
export type Strategy = (typeof STRATEGIES)[number];
const STRATEGIES = ["fallback", "weighted", "least-latency", "least-cost", "sticky"] as const;

export type CustomCost =
  | { readonly total: number }
  | {
      readonly perTokenIn: number;
      readonly perTokenOut: number;
      /** Input read from, and written to, the provider's prompt cache; undefined: as `perTokenIn`. */
      readonly perCacheRead?: number | undefined;
      readonly perCacheWrite?: number | undefined;
    };

type MutableOptions = { -readonly [Name in keyof CallOptions]: CallOptions[Name] };

export const NO_OPTIONS: CallOptions = {};

const MAX_METADATA_KEYS = 32;
const MAX_TIMEOUT_MS = 3_600_000;
const MAX_RETRY_WAIT_MS = 600_000;
const MAX_WEIGHT = 1_000_000;
const MAX_TEXT = 512;
const MAX_PATTERNS = 32;

type OptionReader = (options: MutableOptions, value: string, name: string) => void;

/** A map, because callers choose the names: an object would also find those of `Object.prototype`. */
const READERS: ReadonlyMap<string, OptionReader> = new Map(
  Object.entries<OptionReader>({
    "skip-cache": (options, value, name) => (options.skipCache = toBoolean(value, name)),
    "cache-ttl": (options, value, name) => (options.cacheTtlS = toInteger(value, name, 1, MAX_CACHE_TTL_S)),
    "cache-key": (options, value, name) => (options.cacheKey = toText(value, name)),
    "collect-log": (options, value, name) => (options.collectLog = toBoolean(value, name)),
    "collect-log-payload": (options, value, name) => (options.collectLogPayload = toBoolean(value, name)),
    metadata: (options, value, name) => (options.metadata = toMetadata(value, name)),
    "custom-cost": (options, value, name) => (options.customCost = toCustomCost(value, name)),
    "event-id": (options, value, name) => (options.eventId = toText(value, name)),
    "request-timeout": (options, value, name) =>
      (options.requestTimeoutMs = toInteger(value, name, 1, MAX_TIMEOUT_MS)),
    "max-attempts": (options, value, name) => (options.maxAttempts = toInteger(value, name, 1, MAX_ATTEMPTS)),
    "retry-delay": (options, value, name) =>
      (options.retryDelayMs = toInteger(value, name, 0, MAX_RETRY_DELAY_MS)),
    backoff: (options, value, name) => (options.backoff = toBackoff(value, name)),
    "drop-params": (options, value, name) => (options.dropParams = toBoolean(value, name)),
    "byok-alias": (options, value, name) => (options.keyAlias = toText(value, name)),
    "max-retry-wait": (options, value, name) =>
      (options.maxRetryWaitMs = toInteger(value, name, 0, MAX_RETRY_WAIT_MS)),
    "first-token-timeout": (options, value, name) =>
      (options.firstTokenTimeoutMs = toInteger(value, name, 1, MAX_TIMEOUT_MS)),
    "stall-timeout": (options, value, name) =>
      (options.stallTimeoutMs = toInteger(value, name, 1, MAX_TIMEOUT_MS)),
    "otel-trace-id": (options, value, name) => (options.otelTraceId = toHex(value, name, 32)),
    "otel-parent-span-id": (options, value, name) => (options.otelParentSpanId = toHex(value, name, 16)),
    "hold-response": (options, value, name) => (options.holdsResponse = toBoolean(value, name)),
    resumable: (options, value, name) => (options.isResumable = toBoolean(value, name)),
    "fallback-on": (options, value, name) => (options.fallbackOn = toFallbackCauses(value, name)),
    "hedge-after": (options, value, name) =>
      (options.hedgeAfterMs = toInteger(value, name, 1, MAX_TIMEOUT_MS)),
    strategy: (options, value, name) => (options.strategy = toStrategy(value, name)),
    weight: (options, value, name) => (options.weight = toWeight(value, name)),
    "session-id": (options, value, name) => (options.sessionId = toText(value, name)),
    "turn-id": (options, value, name) => (options.turnId = toText(value, name)),
    "no-session-affinity": (options, value, name) => (options.hasSessionAffinity = !toBoolean(value, name)),
    guardrails: (options, value, name) => (options.guardrails = toGuardrails(value, name)),
    "allowed-models": (options, value, name) => (options.allowedModels = toPatterns(value, name)),
    "allowed-providers": (options, value, name) => (options.allowedProviders = toPatterns(value, name)),
  }),
);

/** The header's name without `gw-aig-` or `cf-aig-`; null for other headers. Takes lower case. */
export function gatewayHeaderName(name: string): string | null {
  return name.startsWith("gw-aig-") || name.startsWith("cf-aig-") ? name.slice(7) : null;
}

export class CallOptionsReader {
  readonly #options: MutableOptions = {};
  /** Options that were set with `gw-aig-`, which takes precedence over `cf-aig-` in any order. */
  readonly #own: string[] = [];

  /** Takes a header name in lower case. Unknown gateway headers are ignored, because a newer client may send them. */
  add(name: string, value: string): void {
    const option = name.slice(7);
    const read = READERS.get(option);
    if (read === undefined) return;
    const isOwn = name.startsWith("gw-");
    if (!isOwn && this.#own.includes(option)) return;
    if (isOwn) this.#own.push(option);
    read(this.#options, value, name);
  }

  get options(): CallOptions {
    return this.#options;
  }
}

/** Options in the `config` object of a universal step. */
export function stepConfigOptions(config: unknown): CallOptions {
  if (config === undefined || config === null) return NO_OPTIONS;
  if (typeof config !== "object" || Array.isArray(config)) throw invalid("config", "an object");
  const given = config as Record<string, unknown>;
  const options: MutableOptions = {};
  for (const [key, header] of Object.entries(CONFIG_KEYS)) {
    const value = given[key];
    if (value === undefined || value === null) continue;
    const text = Array.isArray(value) ? value.join(",") : value;
    if (typeof text !== "number" && typeof text !== "string" && typeof text !== "boolean")
      throw invalid(`config.${key}`, "a number, a boolean or text");
    READERS.get(header)?.(options, String(text), `config.${key}`);
  }
  return options;
}

const CONFIG_KEYS: Readonly<Record<string, string>> = {
  requestTimeout: "request-timeout",
  maxAttempts: "max-attempts",
  retryDelay: "retry-delay",
  backoff: "backoff",
  maxRetryWait: "max-retry-wait",
  firstTokenTimeout: "first-token-timeout",
  stallTimeout: "stall-timeout",
  fallbackOn: "fallback-on",
  weight: "weight",
};

function toBoolean(value: string, name: string): boolean {
  const text = value.toLowerCase();
  if (text === "true") return true;
  if (text === "false") return false;
  throw invalid(name, "true or false");
}

function toInteger(value: string, name: string, min: number, max: number): number {
  const number = /^\d{1,12}$/.test(value) ? Number(value) : Number.NaN;
  if (!(number >= min && number <= max)) throw invalid(name, `a whole number from ${min} to ${max}`);
  return number;
}

function toText(value: string, name: string): string {
  if (value === "" || value.length > MAX_TEXT) throw invalid(name, `1 to ${MAX_TEXT} characters`);
  return value;
}

/** Names of models or providers, with `*` for any text and `!` for an exclusion. */
function toPatterns(value: string, name: string): string[] {
  const patterns = value.split(",").map((part) => part.trim());
  const isGood =
    patterns.length <= MAX_PATTERNS && patterns.every((text) => /^!?[\w@./:*-]{1,256}$/.test(text));
  if (!isGood) throw invalid(name, `a list of at most ${MAX_PATTERNS} names, with * for any text`);
  return patterns;
}

const GUARDRAIL = new RegExp(
  `^(?:${["pii", "secrets", ...PII_KINDS, ...SECRET_KINDS].join("|")})=(?:block|mask|flag)$`,
);

function toGuardrails(value: string, name: string): string {
  const rules = value.split(",").map((part) => part.trim().toLowerCase());
  if (rules.length <= MAX_PATTERNS && rules.every((text) => GUARDRAIL.test(text)))
    return [...new Set(rules)].sort().join(",");
  throw invalid(name, "a list such as pii=mask, secrets=block: kinds with block, mask or flag");
}

function toBackoff(value: string, name: string): Backoff {
  if (value === "constant" || value === "linear" || value === "exponential") return value;
  throw invalid(name, "constant, linear or exponential");
}

function toStrategy(value: string, name: string): Strategy {
  const strategy = STRATEGIES.find((known) => known === value);
  if (strategy === undefined) throw invalid(name, STRATEGIES.join(", "));
  return strategy;
}

/** An id of W3C Trace Context, which is not all zeros. */
function toHex(value: string, name: string, digits: number): string {
  const text = value.trim().toLowerCase();
  if (text.length !== digits || !/^[0-9a-f]+$/.test(text) || /^0+$/.test(text))
    throw invalid(name, `${digits} hexadecimal digits, not all of them 0`);
  return text;
}

function toWeight(value: string, name: string): number {
  const weight = /^\d{1,7}(?:\.\d{1,6})?$/.test(value) ? Number(value) : Number.NaN;
  if (!(weight > 0 && weight <= MAX_WEIGHT)) throw invalid(name, `a number above 0, at most ${MAX_WEIGHT}`);
  return weight;
}

const FALLBACK_CAUSES = [
  "4xx",
  "5xx",
  "timeout",
  "connection",
  "in_band",
  "context_length",
  "content_filter",
] as const;

function toFallbackCauses(value: string, name: string): FallbackCause[] {
  return value.split(",").map((part) => {
    const text = part.trim();
    const cause = FALLBACK_CAUSES.find((known) => known === text);
    if (cause !== undefined) return cause;
    if (!/^[45]\d\d$/.test(text)) {
      throw invalid(name, `a list of statuses from 400 to 599, ${FALLBACK_CAUSES.join(", ")}`);
    }
    return Number(text);
  });
}

/** A large integer becomes the text of its digits: limits and figures belong to its value. */
export function toMetadata(value: string, name: string): string {
  const object = toObject(value, name, parseKeepingDigits);
  const entries = Object.entries(object);
  if (entries.length > MAX_METADATA_KEYS)
    throw invalid(name, `an object with at most ${MAX_METADATA_KEYS} keys`);
  for (const [key, item] of entries) {
    // Rules of a gateway can rely on these keys, so only the service sets them.
    if (key.startsWith(RESERVED_METADATA_PREFIX)) {
      throw new SignalboxError("gateway_malformed_request", {
        message: `${name}: keys that begin with ${RESERVED_METADATA_PREFIX} are reserved`,
      });
    }
    if (item !== null && !["string", "number", "boolean"].includes(typeof item)) {
      throw invalid(name, "a flat JSON object of strings, numbers, booleans and null");
    }
  }
  return JSON.stringify(Object.fromEntries(entries));
}

function toCustomCost(value: string, name: string): CustomCost {
  const object = toObject(value, name);
  const { total_cost: total, per_token_in: perTokenIn, per_token_out: perTokenOut } = object;
  const { per_cache_read_token: perCacheRead, per_cache_write_token: perCacheWrite } = object;
  if (isPrice(total)) return { total };
  const isPriceOrNone = (price: unknown) => price === undefined || isPrice(price);
  if (
    isPrice(perTokenIn) &&
    isPrice(perTokenOut) &&
    isPriceOrNone(perCacheRead) &&
    isPriceOrNone(perCacheWrite)
  ) {
    return {
      perTokenIn,
      perTokenOut,
      perCacheRead,
      perCacheWrite,
    };
  }
  throw invalid(
    name,
    '{"total_cost":n} or {"per_token_in":n,"per_token_out":n}, optionally with "per_cache_read_token" and "per_cache_write_token"',
  );
}

function isPrice(price: unknown): price is number {
  return typeof price === "number" && Number.isFinite(price) && price >= 0;
}

function toObject(
  value: string,
  name: string,
  parse: (json: string) => unknown = JSON.parse,
): Record<string, unknown> {
  let parsed: unknown;
  try {
    // Node decodes header values as Latin-1; clients send UTF-8.
    parsed = parse(Buffer.from(value, "latin1").toString("utf8"));
  } catch {
    throw invalid(name, "a JSON object");
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) {
    throw invalid(name, "a JSON object");
  }
  return parsed as Record<string, unknown>;
}

function invalid(name: string, expected: string): SignalboxError {
  return new SignalboxError("gateway_malformed_request", { message: `${name} must be ${expected}` });
}
