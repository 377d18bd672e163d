/**
 * Computes the cost of a call in US dollars, by the first that applies: the prices of the account, the prices of the configuration, the
 * cost that the provider states, the list prices of the `@pydantic/genai-prices` package (which uses no network at run time). The built-in
 * provider `echo` costs nothing.
 *
 * Matching a model against the package's patterns takes about 100 µs, so the result is cached by model. The package is loaded with the first call
 * that has usage.
 */
import type { ModelPrice } from "@pydantic/genai-prices";
import { LRUCache } from "lru-cache";
import { type Clock, systemClock } from "../../core/clock.ts";
import type { Usage } from "../../engines/relay/index.ts";
import type { CustomCost } from "../step/call-options.ts";
import { isPackageLoaded, loadPackage, packageIdOf } from "./prices-package.ts";

/** US dollars per million tokens, and per thousand searches. */
export interface PriceOverride {
  readonly in: number;
  readonly out: number;
  /** Input read from the provider's prompt cache; default: as `in`. */
  readonly cached?: number | undefined;
  /** Input written to the provider's prompt cache; default: as `in`. */
  readonly cacheWrite?: number | undefined;
  /** Input written to the prompt cache for an hour; default: as `cacheWrite`. */
  readonly cacheWrite1h?: number | undefined;
  /** Output spent on reasoning; default: as `out`. */
  readonly reasoning?: number | undefined;
  /** Sound and pictures; default: as `in` and `out`. */
  readonly audioIn?: number | undefined;
  readonly audioOut?: number | undefined;
  readonly imageIn?: number | undefined;
  readonly imageOut?: number | undefined;
  /** A thousand web searches; default 0. */
  readonly searches?: number | undefined;
  /** Factors of the service tiers `flex`, `batch` and `priority`; default: those of the provider. */
  readonly tiers?: Readonly<Record<string, number>> | undefined;
}

/** By provider slug, then by model; the model `*` applies to every other model of the provider. */
export type PriceOverrides = Readonly<Record<string, Readonly<Record<string, PriceOverride>>>>;

/** Bounded, because callers choose model names. */
const MAX_CACHED_MODELS = 2000;
/** Some providers charge by the time of day, in steps of an hour or half an hour; a delay of a minute is acceptable. */
const CONDITIONAL_PRICE_TTL_MS = 60_000;
const PER_MILLION = 1e-6;
const NO_OVERRIDES: PriceOverrides = {};

interface KnownPrices {
  readonly rates: ModelPrice;
  readonly contextWindow: number | null;
}

/** The process answers by itself, so that a budget can be tried without a provider. */
const ECHO: KnownPrices = { rates: { input_mtok: 0, output_mtok: 0 }, contextWindow: null };

interface Prices {
  /** Null when the package does not know the model. */
  readonly found: KnownPrices | null;
  /** When the prices must be looked up again; infinite for prices without conditions. */
  readonly staleAt: number;
}

export class PriceTable {
  /** By account; kept up to date by the management of prices. */
  readonly accountPrices = new Map<string, PriceOverrides>();
  /** Null when the configuration has none. */
  readonly #overrides: PriceOverrides | null;
  readonly #clock: Clock;
  readonly #cached = new LRUCache<string, Prices>({ max: MAX_CACHED_MODELS });

  #last: (Prices & { readonly packageId: string; readonly model: string }) | null = null;

  constructor(overrides: PriceOverrides = {}, clock: Clock = systemClock) {
    this.#overrides = Object.keys(overrides).length === 0 ? null : overrides;
    this.#clock = clock;
  }

  /** Null when the price of the model is unknown. `own` are the prices of the account. */
  costOf(provider: string, model: string, usage: Usage, own?: PriceOverrides): number | null {
    const override = this.overrideOf(provider, model, own);
    if (override !== undefined)
      return costByOverride(override, usage, tierFactor(provider, usage, override.tiers));
    if (usage.reportedCost !== null) return usage.reportedCost;
    const found = this.#find(provider, model);
    return found === null ? null : costByRates(found.rates, usage, tierFactor(provider, usage));
  }

  /** True when the model has no price, and the name that a response gives it may have one: the name of an Azure deployment has none. */
  needsOtherName(provider: string, model: string, own?: PriceOverrides): boolean {
    if (this.overrideOf(provider, model, own) !== undefined) return false;
    if (!this.#hasPrices(provider, own)) return false;
    // Asked while the client waits for the head of the response, which must not wait until the package is loaded.
    return !isPackageLoaded() || this.#find(provider, model) === null;
  }

  #hasPrices(provider: string, own: PriceOverrides | undefined): boolean {
    return (
      packageIdOf(provider) !== undefined ||
      ownValue(this.#overrides ?? NO_OVERRIDES, provider) !== undefined ||
      ownValue(own ?? NO_OVERRIDES, provider) !== undefined
    );
  }

  /** The prices of an account; undefined when it has none. */
  ofAccount(accountId: string): PriceOverrides | undefined {
    return this.accountPrices.size === 0 ? undefined : this.accountPrices.get(accountId);
  }

  overrideOf(provider: string, model: string, own?: PriceOverrides): PriceOverride | undefined {
    return (
      (own === undefined ? undefined : findOverride(own, provider, model)) ??
      (this.#overrides === null ? undefined : findOverride(this.#overrides, provider, model))
    );
  }

  /** The most tokens that the model reads in one call; null when that is not known. */
  contextWindowOf(provider: string, model: string): number | null {
    return this.#find(provider, model)?.contextWindow ?? null;
  }

  /** The list prices of a model, with the names of the package; null when the package does not know the model. */
  listPricesOf(provider: string, model: string): ModelPrice | null {
    return this.#find(provider, model)?.rates ?? null;
  }

  #find(provider: string, model: string): KnownPrices | null {
    if (provider === "echo") return ECHO;
    const packageId = packageIdOf(provider);
    return packageId === undefined || model === "" ? null : this.#ratesOf(packageId, model);
  }

  #ratesOf(packageId: string, model: string): KnownPrices | null {
    const now = this.#clock.now();
    // A call asks several times for one model, and most calls have the model of the call before.
    const last = this.#last;
    if (last?.packageId === packageId && last.model === model && now < last.staleAt) return last.found;
    const key = `${packageId}\n${model}`;
    const known = this.#cached.get(key);
    if (known !== undefined && now < known.staleAt) {
      this.#last = { ...known, packageId, model };
      return known.found;
    }
    const found = loadPackage().calcPrice({}, model, { providerId: packageId, timestamp: new Date(now) });
    const isConditional = Array.isArray(found?.model.prices);
    const prices =
      found === null ? null : { rates: found.model_price, contextWindow: found.model.context_window ?? null };
    this.#cached.set(key, {
      found: prices,
      staleAt: isConditional ? now + CONDITIONAL_PRICE_TTL_MS : Number.POSITIVE_INFINITY,
    });
    return prices;
  }
}

/** The price that a caller states for its own call. */
export function costByCaller(custom: CustomCost, usage: Usage): number {
  if ("total" in custom) return custom.total;
  return custom.perTokenIn * usage.tokensIn + custom.perTokenOut * usage.tokensOut;
}

export function costByOverride(price: PriceOverride, usage: Usage, factor = 1): number {
  const cacheWrite = price.cacheWrite ?? price.in;
  const tokens = sum(usage, {
    input: price.in,
    cached: price.cached ?? price.in,
    cacheWrite,
    cacheWrite1h: price.cacheWrite1h ?? cacheWrite,
    audioIn: price.audioIn ?? price.in,
    imageIn: price.imageIn ?? price.in,
    output: price.out,
    reasoning: price.reasoning ?? price.out,
    audioOut: price.audioOut ?? price.out,
    imageOut: price.imageOut ?? price.out,
  });
  return tokens * factor + (usage.searches * (price.searches ?? 0)) / 1000;
}

function costByRates(rates: ModelPrice, usage: Usage, factor: number): number {
  const rate = (name: string) => rateAt(rates[name], usage.tokensIn);
  const input = rate("input_mtok") ?? 0;
  const output = rate("output_mtok") ?? 0;
  const cacheWrite = rate("cache_write_mtok") ?? input;
  const tokens = sum(usage, {
    input,
    cached: rate("cache_read_mtok") ?? input,
    cacheWrite,
    cacheWrite1h: rate("cache_write_1h_mtok") ?? cacheWrite,
    audioIn: rate("input_audio_mtok") ?? input,
    imageIn: rate("input_image_mtok") ?? input,
    output,
    reasoning: rate("output_reasoning_mtok") ?? output,
    audioOut: rate("output_audio_mtok") ?? output,
    imageOut: rate("output_image_mtok") ?? output,
  });
  const perRequest = rate("requests_kcount") ?? 0;
  return tokens * factor + (perRequest + usage.searches * (rate("web_searches_kcount") ?? 0)) / 1000;
}

/**
 * What a service tier does to the price of a token. The package has no prices of tiers; these are the providers' published discounts. A
 * priority tier costs 1.7 to 2 times the usual price, depending on the model: the table has the larger one. Anthropic's priority tier is
 * paid in advance and has the usual price.
 */
const TIER_FACTORS: Readonly<Record<string, Readonly<Record<string, number>>>> = {
  openai: { flex: 0.5, batch: 0.5, priority: 2 },
  "azure-openai": { batch: 0.5, priority: 2 },
  anthropic: { batch: 0.5 },
  "google-ai-studio": { flex: 0.5, batch: 0.5, priority: 2 },
  "google-vertex-ai": { flex: 0.5, batch: 0.5, priority: 2 },
};

function tierFactor(provider: string, { tier }: Usage, own?: Readonly<Record<string, number>>): number {
  if (tier === "") return 1;
  return (
    (own === undefined ? undefined : ownValue(own, tier)) ??
    ownValue(ownValue(TIER_FACTORS, provider) ?? {}, tier) ??
    1
  );
}

interface Rates {
  readonly input: number;
  readonly cached: number;
  readonly cacheWrite: number;
  readonly cacheWrite1h: number;
  readonly audioIn: number;
  readonly imageIn: number;
  readonly output: number;
  readonly reasoning: number;
  readonly audioOut: number;
  readonly imageOut: number;
}

/** Counts that exceed their total are a provider's error; no part of the price becomes negative. */
function sum(usage: Usage, rates: Rates): number {
  const { tokensInCached, tokensInCacheWrite, tokensInCacheWrite1h, tokensInAudio, tokensInImage } = usage;
  const { tokensOutReasoning, tokensOutAudio, tokensOutImage } = usage;
  const plainIn = usage.tokensIn - tokensInCached - tokensInCacheWrite - tokensInAudio - tokensInImage;
  const plainOut = usage.tokensOut - tokensOutReasoning - tokensOutAudio - tokensOutImage;
  return (
    (Math.max(0, plainIn) * rates.input +
      tokensInCached * rates.cached +
      (tokensInCacheWrite - tokensInCacheWrite1h) * rates.cacheWrite +
      tokensInCacheWrite1h * rates.cacheWrite1h +
      tokensInAudio * rates.audioIn +
      tokensInImage * rates.imageIn +
      Math.max(0, plainOut) * rates.output +
      tokensOutReasoning * rates.reasoning +
      tokensOutAudio * rates.audioOut +
      tokensOutImage * rates.imageOut) *
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

/** Own properties only: a model named `constructor` must not find the prototype's. */
function findOverride(prices: PriceOverrides, provider: string, model: string): PriceOverride | undefined {
  const ofProvider = ownValue(prices, provider);
  return ofProvider === undefined ? undefined : (ownValue(ofProvider, model) ?? ownValue(ofProvider, "*"));
}

function ownValue<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}
