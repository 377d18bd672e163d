/**
 * Reads a price list: a table of this service, or the map of model prices that LiteLLM publishes and many tools use: an object with one
 * entry for each model, prices in US dollars per token. A model whose price cannot be expressed is left out and reported: a price that is
 * too low would make a budget wrong.
 */
import type { ModelPrice, PriceTable } from "@signalbox/client";
import { type Fields, isFields } from "../core/fields.ts";
import { priceTable } from "../config/index.ts";
import { UsageError } from "./command.ts";
import { slugOf } from "./litellm-providers.ts";

export interface ReadPrices {
  readonly prices: PriceTable;
  /** Why models were left out → how many. */
  readonly leftOut: Readonly<Record<string, number>>;
}

const PER_MILLION = 1e6;
/** Prices per token, by the member of `ModelPrice`. */
const TOKEN_PRICES = {
  in: "input_cost_per_token",
  out: "output_cost_per_token",
  cached: "cache_read_input_token_cost",
  cacheWrite: "cache_creation_input_token_cost",
  cacheWrite1h: "cache_creation_input_token_cost_above_1hr",
  reasoning: "output_cost_per_reasoning_token",
  audioIn: "input_cost_per_audio_token",
  audioOut: "output_cost_per_audio_token",
  imageIn: "input_cost_per_image_token",
  imageOut: "output_cost_per_image_token",
} as const;
const TIER_SUFFIXES = { flex: "_flex", batch: "_batches", priority: "_priority" } as const;
/** The entry that documents the others. */
const SAMPLE = "sample_spec";

/** Throws `UsageError` for a text that is no price list. */
export function readPrices(text: string): ReadPrices {
  const value = parseObject(text);
  const own = "prices" in value ? value["prices"] : value;
  if (!isPublicMap(value)) {
    const parsed = priceTable.safeParse(own);
    if (parsed.success) return { prices: parsed.data as PriceTable, leftOut: {} };
    const [issue] = parsed.error.issues;
    throw new UsageError(`no list of prices: ${issue?.path.join(".") ?? ""}: ${issue?.message ?? "invalid"}`);
  }
  const prices: Record<string, Record<string, ModelPrice>> = {};
  const leftOut: Record<string, number> = {};
  for (const [name, entry] of Object.entries(value)) {
    if (name === SAMPLE) continue;
    const read = readEntry(name, entry);
    if ("reason" in read) leftOut[read.reason] = (leftOut[read.reason] ?? 0) + 1;
    else Object.assign((prices[read.provider] ??= {}), Object.fromEntries([[read.model, read.price]]));
  }
  return { prices, leftOut };
}

/** The members of a public price that a model of LiteLLM's own configuration may have; null without a price. */
export function priceOf(entry: Fields): ModelPrice | null {
  const input = toPrice(entry[TOKEN_PRICES.in]);
  if (input === null) return null;
  const parts = Object.entries(TOKEN_PRICES)
    .map(([name, member]) => [name, toPrice(entry[member])] as const)
    .filter(([, price]) => price !== null);
  const tiers = Object.entries(TIER_SUFFIXES)
    .map(([tier, suffix]) => [tier, tierFactor(entry, suffix)] as const)
    .filter(([, factor]) => factor !== null);
  const searches = searchPrice(entry["search_context_cost_per_query"]);
  return {
    in: input,
    out: 0,
    ...Object.fromEntries(parts),
    ...(searches === null ? {} : { searches }),
    ...(tiers.length === 0 ? {} : { tiers: Object.fromEntries(tiers) }),
  };
}

function readEntry(
  name: string,
  entry: unknown,
): { provider: string; model: string; price: ModelPrice } | { reason: string } {
  if (!isFields(entry)) return { reason: "no price of a model" };
  const { litellm_provider: named } = entry;
  const provider = typeof named === "string" ? slugOf(named) : undefined;
  if (typeof named !== "string" || provider === undefined) return { reason: "unknown provider" };
  if (Object.keys(entry).some((member) => /_above_\d+k_tokens/.test(member))) {
    return { reason: "dearer for long prompts, which a price of the account cannot express" };
  }
  const price = priceOf(entry);
  if (price === null) return { reason: "no price per token" };
  const prefix = name.slice(0, name.indexOf("/"));
  const model = slugOf(prefix) === provider ? name.slice(prefix.length + 1) : name;
  return { provider, model, price };
}

/** The dearer one of the factors of input and output; null when the entry has no price of the tier. */
function tierFactor(entry: Fields, suffix: string): number | null {
  const factors = [TOKEN_PRICES.in, TOKEN_PRICES.out].flatMap((member) => {
    const [usual, ofTier] = [toPrice(entry[member]), toPrice(entry[member + suffix])];
    return usual === null || usual === 0 || ofTier === null ? [] : [ofTier / usual];
  });
  return factors.length === 0 ? null : finite(Number(Math.max(...factors).toFixed(6)));
}

/** US dollars for a thousand searches: the most expensive size of the context. */
function searchPrice(sizes: unknown): number | null {
  if (!isFields(sizes)) return null;
  const prices = Object.values(sizes).filter((price) => typeof price === "number" && price >= 0);
  return prices.length === 0 ? null : finite(Number((Math.max(...(prices as number[])) * 1000).toFixed(6)));
}

/** US dollars per million tokens, rounded to what the sum of a call can show; a price may be written as text. */
function toPrice(value: unknown): number | null {
  const price = typeof value === "string" && value.trim() !== "" ? Number(value) : value;
  if (typeof price !== "number" || !Number.isFinite(price) || price < 0) return null;
  return finite(Number((price * PER_MILLION).toPrecision(12)));
}

/** Null for a price beyond all numbers. */
function finite(price: number): number | null {
  return Number.isFinite(price) ? price : null;
}

function isPublicMap(value: Fields): boolean {
  return Object.values(value).some((entry) => isFields(entry) && "litellm_provider" in entry);
}

function parseObject(text: string): Fields {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new UsageError(`no list of prices: ${error instanceof Error ? error.message : String(error)}`);
  }
  if (!isFields(value)) throw new UsageError("no list of prices: expected a JSON object");
  return value;
}
