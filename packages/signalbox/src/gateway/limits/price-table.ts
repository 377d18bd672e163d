/**
 * Computes the cost of a call in US dollars, by the first that applies: the caller's own price, the configuration's prices, the list
 * prices of the `@pydantic/genai-prices` package (which uses no network at run time).
 *
 * Matching a model against the package's patterns takes about 100 µs, so the result is cached by model. Loading its data takes about
 * 50 ms and happens with the first call that has usage.
 */
import { createRequire } from "node:module";
import type { calcPrice, ModelPrice } from "@pydantic/genai-prices";
import { LRUCache } from "lru-cache";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Usage } from "../../engines/relay/index.ts";
import type { CustomCost } from "../plan/call-options.ts";

/** US dollars per million tokens. */
export interface PriceOverride {
  readonly in: number;
  readonly out: number;
  /** Input read from the provider's prompt cache; default: as `in`. */
  readonly cached?: number | undefined;
  /** Input written to the provider's prompt cache; default: as `in`. */
  readonly cacheWrite?: number | undefined;
  /** Output spent on reasoning; default: as `out`. */
  readonly reasoning?: number | undefined;
}

/** By provider slug, then by model; the model `*` applies to every other model of the provider. */
export type PriceOverrides = Readonly<Record<string, Readonly<Record<string, PriceOverride>>>>;

/** Provider slug → provider id of the package. Other providers have no list prices. */
const PACKAGE_IDS: Readonly<Record<string, string>> = {
  openai: "openai",
  anthropic: "anthropic",
  "google-ai-studio": "google",
  "google-vertex-ai": "google",
  "azure-openai": "azure",
  "aws-bedrock": "aws",
  "workers-ai": "cloudflare",
  groq: "groq",
  grok: "x-ai",
  mistral: "mistral",
  deepseek: "deepseek",
  "perplexity-ai": "perplexity",
  cohere: "cohere",
  cerebras: "cerebras",
  openrouter: "openrouter",
  fireworks: "fireworks",
  together: "together",
};

/** The provider's id in the package; undefined for providers without list prices. */
export function packageIdOf(provider: string): string | undefined {
  return ownValue(PACKAGE_IDS, provider);
}

/** Bounded, because callers choose model names. */
const MAX_CACHED_MODELS = 2000;
/** Some providers charge by the time of day, in steps of an hour or half an hour; a delay of a minute is acceptable. */
const CONDITIONAL_PRICE_TTL_MS = 60_000;
const PER_MILLION = 1e-6;

interface PricesPackage {
  readonly calcPrice: typeof calcPrice;
}

let pricesPackage: PricesPackage | undefined;

function loadPackage(): PricesPackage {
  pricesPackage ??= createRequire(import.meta.url)("@pydantic/genai-prices") as PricesPackage;
  return pricesPackage;
}

/** The prices of a model. */
interface Prices {
  /** Null when the package does not know the model. */
  readonly rates: ModelPrice | null;
  /** When the prices must be looked up again; infinite for prices without conditions. */
  readonly staleAt: number;
}

export class PriceTable {
  readonly #overrides: PriceOverrides;
  readonly #clock: Clock;
  readonly #cached = new LRUCache<string, Prices>({ max: MAX_CACHED_MODELS });

  constructor(overrides: PriceOverrides = {}, clock: Clock = systemClock) {
    this.#overrides = overrides;
    this.#clock = clock;
  }

  /** Null when the price of the model is unknown. `custom` is the price that the caller stated for this call. */
  costOf(provider: string, model: string, usage: Usage, custom?: CustomCost): number | null {
    if (custom !== undefined) {
      if ("total" in custom) return custom.total;
      return custom.perTokenIn * usage.tokensIn + custom.perTokenOut * usage.tokensOut;
    }
    // Own properties only: a model named `constructor` must not find the prototype's.
    const own = ownValue(this.#overrides, provider);
    const override = own === undefined ? undefined : (ownValue(own, model) ?? ownValue(own, "*"));
    if (override !== undefined) return costByOverride(override, usage);
    const packageId = packageIdOf(provider);
    if (packageId === undefined || model === "") return null;
    const rates = this.#ratesOf(packageId, model);
    return rates === null ? null : costByRates(rates, usage);
  }

  #ratesOf(packageId: string, model: string): ModelPrice | null {
    const key = `${packageId}\n${model}`;
    const now = this.#clock.now();
    const known = this.#cached.get(key);
    if (known !== undefined && now < known.staleAt) return known.rates;
    const found = loadPackage().calcPrice({}, model, { providerId: packageId, timestamp: new Date(now) });
    const isConditional = Array.isArray(found?.model.prices);
    const rates = found?.model_price ?? null;
    this.#cached.set(key, {
      rates,
      staleAt: isConditional ? now + CONDITIONAL_PRICE_TTL_MS : Number.POSITIVE_INFINITY,
    });
    return rates;
  }
}

function costByOverride(price: PriceOverride, usage: Usage): number {
  return sum(usage, {
    input: price.in,
    cached: price.cached ?? price.in,
    cacheWrite: price.cacheWrite ?? price.in,
    output: price.out,
    reasoning: price.reasoning ?? price.out,
  });
}

function costByRates(rates: ModelPrice, usage: Usage): number {
  const input = rateAt(rates["input_mtok"], usage.tokensIn) ?? 0;
  const output = rateAt(rates["output_mtok"], usage.tokensIn) ?? 0;
  const perRequest = rateAt(rates["requests_kcount"], usage.tokensIn) ?? 0;
  return (
    perRequest / 1000 +
    sum(usage, {
      input,
      cached: rateAt(rates["cache_read_mtok"], usage.tokensIn) ?? input,
      cacheWrite: rateAt(rates["cache_write_mtok"], usage.tokensIn) ?? input,
      output,
      reasoning: rateAt(rates["output_reasoning_mtok"], usage.tokensIn) ?? output,
    })
  );
}

interface Rates {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly output: number;
  readonly reasoning: number;
}

function sum(usage: Usage, rates: Rates): number {
  const plainIn = Math.max(0, usage.tokensIn - usage.tokensInCached - usage.tokensInCacheWrite);
  const plainOut = Math.max(0, usage.tokensOut - usage.tokensOutReasoning);
  return (
    (plainIn * rates.input +
      usage.tokensInCached * rates.cached +
      usage.tokensInCacheWrite * rates.cacheWrite +
      plainOut * rates.output +
      usage.tokensOutReasoning * rates.reasoning) *
    PER_MILLION
  );
}

/** Some models charge more for long prompts: the highest tier that the whole input exceeds applies to every token of the call. */
function rateAt(rate: ModelPrice[string], tokensIn: number): number | undefined {
  if (rate === undefined || typeof rate === "number") return rate;
  let found = rate.base;
  for (const tier of rate.tiers) if (tokensIn > tier.start) found = tier.price;
  return found;
}

function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
