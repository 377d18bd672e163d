/**
 * A list of prices in the form of the price package, as it is read from an address: checked, and merged with the list in use so that no mistake in it
 * changes what calls cost at once. No I/O.
 *
 * 1. A price that becomes more than three times higher or lower, free, or unknown keeps its old value, and is listed as held.
 * 2. A model that the new list does not have keeps its price.
 * 3. A list that is not of the form, or has a pattern that could take long, is refused as a whole.
 */
import type { MatchLogic, ModelInfo, ModelPrice, Provider } from "@pydantic/genai-prices";
import { z } from "zod";

/** A price that waits for the operator. */
export interface HeldPrice {
  readonly provider: string;
  readonly model: string;
  readonly from: ModelInfo["prices"];
  readonly to: ModelInfo["prices"];
}

export interface MergedList {
  readonly providers: readonly Provider[];
  readonly held: readonly HeldPrice[];
}

const MAX_FACTOR = 3;
const MAX_PATTERN_LENGTH = 200;
/** A repetition of something that contains one, or alternatives that are repeated: such a pattern may take exponential time. */
const SLOW_PATTERN = /[*+}]\)*[*+{]|\)[*+{]/;

const rate = z.union([
  z.number().min(0),
  z.object({
    base: z.number().min(0),
    tiers: z.array(z.object({ start: z.number(), price: z.number().min(0) })),
  }),
]);
const prices = z.record(z.string(), rate);
const text = z.string().max(MAX_PATTERN_LENGTH);
const match: z.ZodType<MatchLogic> = z.lazy(() =>
  z.union([
    z.strictObject({ equals: text }),
    z.strictObject({ starts_with: text }),
    z.strictObject({ ends_with: text }),
    z.strictObject({ contains: text }),
    z.strictObject({ regex: text.refine((pattern) => !SLOW_PATTERN.test(pattern), "may take long") }),
    z.strictObject({ or: z.array(match) }),
    z.strictObject({ and: z.array(match) }),
  ]),
);
const model = z.looseObject({
  id: text,
  match,
  prices: z.union([
    prices,
    z.array(z.looseObject({ constraint: z.record(z.string(), z.string()).optional(), prices })),
  ]),
});
const list = z.array(z.looseObject({ id: text, api_pattern: z.string(), models: z.array(model) })).min(1);

/** Throws for a text that is no such list. */
export function parsePriceList(json: string): readonly Provider[] {
  return list.parse(JSON.parse(json)) as unknown as Provider[];
}

/** `present` is the list in use. */
export function mergePriceLists(present: readonly Provider[], next: readonly Provider[]): MergedList {
  const held: HeldPrice[] = [];
  const known = new Map(present.map((provider) => [provider.id, provider]));
  const providers = next.map((provider) => {
    const before = known.get(provider.id);
    known.delete(provider.id);
    return before === undefined ? provider : mergeProvider(before, provider, held);
  });
  return { providers: [...providers, ...known.values()], held };
}

function mergeProvider(before: Provider, next: Provider, held: HeldPrice[]): Provider {
  const known = new Map(before.models.map((info) => [info.id, info]));
  const models = next.models.map((info) => {
    const old = known.get(info.id);
    known.delete(info.id);
    if (old === undefined || !movesFar(old.prices, info.prices)) return info;
    held.push({ provider: next.id, model: info.id, from: old.prices, to: info.prices });
    return { ...info, prices: old.prices };
  });
  // The first model that matches a name counts: those of the new list precede.
  return { ...next, models: [...models, ...known.values()] };
}

/** Compares every old rate with the new one. Conditional prices are compared one by one, in their order. */
function movesFar(before: ModelInfo["prices"], next: ModelInfo["prices"]): boolean {
  const [old, now] = [alternativesOf(before), alternativesOf(next)];
  return old.some((rates, i) => {
    const others = now[i] ?? now.at(-1) ?? {};
    return Object.entries(rates).some(([name, value]) => isFar(numbersOf(value), numbersOf(others[name])));
  });
}

function alternativesOf(found: ModelInfo["prices"]): readonly ModelPrice[] {
  return Array.isArray(found) ? found.map((one) => one.prices) : [found];
}

/** The rate, and those of its tiers. */
function numbersOf(value: ModelPrice[string]): readonly number[] {
  if (value === undefined) return [];
  return typeof value === "number" ? [value] : [value.base, ...value.tiers.map(({ price }) => price)];
}

function isFar(before: readonly number[], next: readonly number[]): boolean {
  return before.some((old, i) => {
    const now = next[i] ?? next[0];
    if (now === undefined) return true;
    if (old === 0) return false;
    return now > old * MAX_FACTOR || now * MAX_FACTOR < old;
  });
}
