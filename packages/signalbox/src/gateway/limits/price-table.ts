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
import { NO_USAGE, type ToolUse, type Usage, type UsageRound } from "../../engines/relay/index.ts";
import type { CustomCost } from "../step/call-options.ts";
import { toModelName } from "../step/model-name.ts";
import { tierFactor } from "./price-tiers.ts";
import { IMAGE_RATE } from "./further-prices.ts";
import { findListPrices, isPackageLoaded, type ListPrices, packageIdOf } from "./prices-package.ts";

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
  /** A thousand searches in files that the provider stores; default 0. */
  readonly fileSearches?: number | undefined;
  /** An hour of sound, and a thousand pages, for models that are billed by these; default: the list prices. */
  readonly audioHour?: number | undefined;
  readonly pages?: number | undefined;
  /** A picture, a million characters that are spoken, and a thousand searches of rankings, for models that are billed by these. */
  readonly image?: number | undefined;
  readonly characters?: number | undefined;
  readonly rankings?: number | undefined;
  /** Factors of the service tiers `flex`, `batch`, `priority` (or `fast`) and `ultrafast`; default: those of the provider. */
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

/** The process answers by itself, so that a budget can be tried without a provider. */
const ECHO: ListPrices = {
  rates: { input_mtok: 0, output_mtok: 0 },
  contextWindow: null,
  isConditional: false,
};

interface Prices {
  /** Null when the package does not know the model. */
  readonly found: ListPrices | null;
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
    // What the provider states includes its tools.
    if (usage.tools !== null && usage.reportedCost === null) {
      const tools = this.#costOfTools(provider, model, usage.tools, own);
      const plain = tools === null ? null : this.costOf(provider, model, { ...usage, tools: null }, own);
      return tools === null || plain === null ? null : plain + tools;
    }
    if (usage.rounds !== null && usage.reportedCost === null)
      return this.#costOfRounds(provider, model, usage, usage.rounds, own);
    const override = this.overrideOf(provider, model, own);
    const byOperator =
      override === undefined
        ? null
        : costByOverride(override, usage, tierFactor(provider, model, usage.tier, override.tiers));
    if (byOperator !== null) return byOperator;
    if (usage.reportedCost !== null) return usage.reportedCost;
    const found = this.#find(provider, model);
    return found === null ? null : costByRates(found.rates, usage, tierFactor(provider, model, usage.tier));
  }

  /** By the list prices, also beside prices of the operator: these are of models. Null when a price is unknown. */
  #costOfTools(
    provider: string,
    model: string,
    { sessions, maps, rounds, isUnpriced }: ToolUse,
    own: PriceOverrides | undefined,
  ): number | null {
    if (isUnpriced) return null;
    const rates = sessions + maps > 0 ? this.#find(provider, model)?.rates : undefined;
    let cost: number | null = plus(
      byThousand(sessions, rates?.["code_sessions_kcount"]),
      byThousand(maps, rates?.["map_answers_kcount"]),
    );
    for (const round of rounds) {
      cost = plus(cost, this.costOf(provider, round.model ?? model, round.usage, own));
    }
    return cost;
  }

  /** Each round at its own model; the searches belong to the call. Null when the price of a round is unknown. */
  #costOfRounds(
    provider: string,
    model: string,
    { searches, fileSearches }: Usage,
    rounds: readonly UsageRound[],
    own: PriceOverrides | undefined,
  ): number | null {
    let cost = 0;
    const all = [{ model, usage: { ...NO_USAGE, searches, fileSearches } }, ...rounds];
    for (const round of all) {
      const one = this.costOf(provider, round.model ?? model, round.usage, own);
      if (one === null) return null;
      cost += one;
    }
    return cost;
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

  /** Other list prices are in use. */
  forgetListPrices(): void {
    this.#cached.clear();
    this.#last = null;
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

  /** The prices of the configuration. */
  get configured(): PriceOverrides {
    return this.#overrides ?? NO_OVERRIDES;
  }

  /** Whether the model has a price. */
  isKnown(provider: string, model: string, own?: PriceOverrides): boolean {
    if (this.overrideOf(provider, model, own) !== undefined) return true;
    const rates = this.listPricesOf(provider, model);
    return rates !== null && Object.keys(rates).length > 0;
  }

  /** The most tokens that the model reads in one call; null when that is not known. */
  contextWindowOf(provider: string, model: string): number | null {
    return this.#find(provider, model)?.contextWindow ?? null;
  }

  /** The list prices of a model, with the names of the package; null when the package does not know the model. */
  listPricesOf(provider: string, model: string): ModelPrice | null {
    return this.#find(provider, model)?.rates ?? null;
  }

  #find(provider: string, model: string): ListPrices | null {
    if (provider === "echo") return ECHO;
    const packageId = packageIdOf(provider);
    return packageId === undefined || !model || toModelName(model) === null
      ? null
      : this.#ratesOf(packageId, model);
  }

  #ratesOf(packageId: string, model: string): ListPrices | null {
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
    const found = findListPrices(packageId, model, now);
    this.#cached.set(key, {
      found,
      staleAt: found?.isConditional === true ? now + CONDITIONAL_PRICE_TTL_MS : Number.POSITIVE_INFINITY,
    });
    return found;
  }
}

/** The price that a caller states for its own call. */
export function costByCaller(custom: CustomCost, usage: Usage): number {
  if ("total" in custom) return custom.total;
  const { perTokenIn, perTokenOut, perCacheRead = perTokenIn, perCacheWrite = perTokenIn } = custom;
  const { tokensIn, tokensOut, tokensInCached, tokensInCacheWrite } = usage;
  const plain = Math.max(0, tokensIn - tokensInCached - tokensInCacheWrite);
  return (
    plain * perTokenIn +
    tokensInCached * perCacheRead +
    tokensInCacheWrite * perCacheWrite +
    tokensOut * perTokenOut
  );
}

/** Null when what was used has no rate: sound, pages, pictures, … of a price for tokens only. */
export function costByOverride(price: PriceOverride, usage: Usage, factor = 1): number | null {
  const byPiece = costByPiece(usage, price);
  if (byPiece !== null) return byPiece;
  const isPriced =
    (usage.seconds > 0 && price.audioHour !== undefined) || (usage.pages > 0 && price.pages !== undefined);
  const { tokensIn, tokensOut } = usage;
  if (hasPieces(usage) && tokensIn + tokensOut === 0 && !isPriced) return null;
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
  const searches = usage.searches * (price.searches ?? 0) + usage.fileSearches * (price.fileSearches ?? 0);
  const pieces =
    (searches + usage.pages * (price.pages ?? 0)) / 1000 + (usage.seconds * (price.audioHour ?? 0)) / 3600;
  return tokens * factor + pieces;
}

/** Of what only the request counts. Null if the price has no such rate: a model that states its tokens is billed by these. */
function costByPiece(
  { images, characters, rankings }: Usage,
  price: Pick<PriceOverride, "image" | "characters" | "rankings">,
): number | null {
  if (images > 0 && price.image !== undefined) return images * price.image;
  if (characters > 0 && price.characters !== undefined) return characters * price.characters * PER_MILLION;
  return rankings > 0 && price.rankings !== undefined ? (rankings * price.rankings) / 1000 : null;
}

/** The rate of a picture of this form; of a form that is not known, the dearest. Undefined if pictures have no rate. */
function imageRate(rates: ModelPrice, form: string): number | undefined {
  const exact = rateAt(rates[`${IMAGE_RATE}${form}`], 0);
  if (exact !== undefined) return exact;
  const all = Object.entries(rates).flatMap(([name, value]) =>
    name.startsWith(IMAGE_RATE) ? (rateAt(value, 0) ?? []) : [],
  );
  return all.length === 0 ? undefined : Math.max(...all);
}

/** Anthropic's price of writing to the prompt cache for an hour, of that for five minutes, where the package does not have it. */
const HOUR_FACTOR = 1.6;

/** Null when what was used has no rate: a model that is priced by the hour has no price for tokens. */
function costByRates(rates: ModelPrice, usage: Usage, factor: number): number | null {
  const flat = flatRatesOf(rates);
  if (flat !== null && hasTokensOnly(usage)) return sum(usage, flat) * factor;
  const rate = (name: string) => rateAt(rates[name], usage.tokensIn);
  const perHour = rate("input_audio_hours") ?? rate("audio_hours");
  const perThousandPages =
    (usage.isAnnotated ? rate("input_annotated_document_kpages") : undefined) ??
    rate("input_document_kpages");
  const pieces = costByPiece(usage, {
    image: usage.images > 0 ? imageRate(rates, usage.imageForm) : undefined,
    characters: rate("characters_mcount"),
    rankings: rate("rankings_kcount"),
  });
  if (pieces !== null) return pieces;
  const requests = rate("requests_kcount");
  // A price by the request includes the searches that it makes.
  const perSearch = rate("web_searches_kcount") ?? (requests === undefined ? undefined : 0);
  const searches = plus(
    byThousand(usage.searches, perSearch),
    byThousand(usage.fileSearches, rate("storage_searches_kcount")),
  );
  if (searches === null) return null;
  const byPiece =
    (usage.seconds * (perHour ?? 0)) / 3600 +
    // A batch has cheaper pages, too.
    (usage.pages * (perThousandPages ?? 0) * factor) / 1000 +
    (requests ?? 0) / 1000 +
    searches;
  const isPieceKnown =
    (perHour !== undefined && usage.seconds > 0) || (perThousandPages !== undefined && usage.pages > 0);
  const hasTokenRates = rates["input_mtok"] !== undefined || rates["output_mtok"] !== undefined;
  const { tokensIn, tokensOut } = usage;
  // A model that states its tokens is billed by these, whatever else it states.
  if (!isPieceKnown && (!hasTokenRates || (hasPieces(usage) && tokensIn + tokensOut === 0))) return null;
  return hasTokenRates ? sum(usage, tokenRatesAt(rates, tokensIn)) * factor + byPiece : byPiece;
}

/** Null for what has no rate. */
function byThousand(count: number, rate: ModelPrice[string]): number | null {
  const each = rateAt(rate, 0);
  return count === 0 ? 0 : each === undefined ? null : (count * each) / 1000;
}

function plus(one: number | null, other: number | null): number | null {
  return one === null || other === null ? null : one + other;
}

function tokenRatesAt(rates: ModelPrice, tokensIn: number): Rates {
  const rate = (name: string) => rateAt(rates[name], tokensIn);
  const input = rate("input_mtok") ?? 0;
  const output = rate("output_mtok") ?? 0;
  const cacheWrite = rate("cache_write_mtok");
  return {
    input,
    cached: rate("cache_read_mtok") ?? input,
    cacheWrite: cacheWrite ?? input,
    cacheWrite1h:
      rate("cache_write_1h_mtok") ?? (cacheWrite === undefined ? input : cacheWrite * HOUR_FACTOR),
    audioIn: rate("input_audio_mtok") ?? input,
    imageIn: rate("input_image_mtok") ?? input,
    output,
    reasoning: rate("output_reasoning_mtok") ?? output,
    audioOut: rate("output_audio_mtok") ?? output,
    imageOut: rate("output_image_mtok") ?? output,
  };
}

const flatRates = new WeakMap<ModelPrice, { readonly rates: Rates | null }>();

/** The rates of tokens, made once; null for a model whose rates depend on the length of the prompt, or that costs more than its tokens. */
function flatRatesOf(prices: ModelPrice): Rates | null {
  let flat = flatRates.get(prices);
  if (flat === undefined) {
    const isFlat =
      Object.values(prices).every((rate) => rate === undefined || typeof rate === "number") &&
      prices["requests_kcount"] === undefined &&
      (prices["input_mtok"] !== undefined || prices["output_mtok"] !== undefined);
    flat = { rates: isFlat ? tokenRatesAt(prices, 0) : null };
    flatRates.set(prices, flat);
  }
  return flat.rates;
}

function hasPieces({ images, characters, rankings, seconds, pages }: Usage): boolean {
  return images + characters + rankings + seconds + pages > 0;
}

function hasTokensOnly(usage: Usage): boolean {
  return !hasPieces(usage) && usage.searches + usage.fileSearches === 0;
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
