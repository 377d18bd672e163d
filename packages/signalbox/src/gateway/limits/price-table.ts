/**
 * What a call cost in US dollars, from the list prices that the `@pydantic/genai-prices` package carries (no network is used at run
 * time) and from the configuration's own prices, which go first.
 *
 * Finding a model among the package's patterns takes about 100 µs, so what was found (also nothing) is remembered per model; loading
 * its data takes about 50 ms and happens with the first call that has usage.
 */
import { createRequire } from "node:module";
import type { calcPrice, ModelPrice } from "@pydantic/genai-prices";
import { LRUCache } from "lru-cache";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { CallUsage } from "../../engines/call-log/index.ts";

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

/** By provider slug, then by model; the model `*` stands for every model of the provider that is not named. */
export type PriceOverrides = Readonly<Record<string, Readonly<Record<string, PriceOverride>>>>;

/** Our slug → the package's id, where they differ. Providers that are in neither column have no list prices. */
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

/** The caller chooses model names, so what is remembered about them is bounded. */
const MAX_REMEMBERED_MODELS = 2000;
/** Some providers charge by the time of day, in steps of an hour or half an hour; a minute late is close enough. */
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

/** A model's prices, ready for arithmetic; `null` stands for "looked up, unknown". */
interface Prices {
  readonly rates: ModelPrice | null;
  /** When to look again; infinite for prices without conditions. */
  readonly staleAt: number;
}

export class PriceTable {
  readonly #overrides: PriceOverrides;
  readonly #clock: Clock;
  readonly #remembered = new LRUCache<string, Prices>({ max: MAX_REMEMBERED_MODELS });

  constructor(overrides: PriceOverrides = {}, clock: Clock = systemClock) {
    this.#overrides = overrides;
    this.#clock = clock;
  }

  /** Null when the price of the model is unknown. */
  costOf(provider: string, model: string, usage: CallUsage): number | null {
    // Objects of the configuration have prototypes; a model named `constructor` must not find one.
    const own = ownValue(this.#overrides, provider);
    const override = own === undefined ? undefined : (ownValue(own, model) ?? ownValue(own, "*"));
    if (override !== undefined) return costByOverride(override, usage);
    const packageId = ownValue(PACKAGE_IDS, provider);
    if (packageId === undefined || model === "") return null;
    const rates = this.#ratesOf(packageId, model);
    return rates === null ? null : costByRates(rates, usage);
  }

  #ratesOf(packageId: string, model: string): ModelPrice | null {
    const key = `${packageId}\n${model}`;
    const now = this.#clock.now();
    const known = this.#remembered.get(key);
    if (known !== undefined && now < known.staleAt) return known.rates;
    const found = loadPackage().calcPrice({}, model, { providerId: packageId, timestamp: new Date(now) });
    const isConditional = Array.isArray(found?.model.prices);
    const rates = found?.model_price ?? null;
    this.#remembered.set(key, {
      rates,
      staleAt: isConditional ? now + CONDITIONAL_PRICE_TTL_MS : Number.POSITIVE_INFINITY,
    });
    return rates;
  }
}

function costByOverride(price: PriceOverride, usage: CallUsage): number {
  return sum(usage, {
    input: price.in,
    cached: price.cached ?? price.in,
    cacheWrite: price.cacheWrite ?? price.in,
    output: price.out,
    reasoning: price.reasoning ?? price.out,
  });
}

function costByRates(rates: ModelPrice, usage: CallUsage): number {
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

function sum(usage: CallUsage, rates: Rates): number {
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

/** Long prompts cost more with some models: the highest tier that the whole input passes applies to every token of the call. */
function rateAt(rate: ModelPrice[string], tokensIn: number): number | undefined {
  if (rate === undefined || typeof rate === "number") return rate;
  let found = rate.base;
  for (const tier of rate.tiers) if (tokensIn > tier.start) found = tier.price;
  return found;
}

function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
