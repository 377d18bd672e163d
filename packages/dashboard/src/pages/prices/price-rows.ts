/** The account's price table as rows, one for each model. */
import { mergeEdit } from "../../format/merge-edit.ts";
import type { ModelPrice, PriceTable } from "@signalbox/client";

export interface OwnPrice {
  readonly provider: string;
  readonly model: string;
  readonly price: ModelPrice;
}

export function pricesOf(table: PriceTable): OwnPrice[] {
  return Object.entries(table).flatMap(([provider, models]) =>
    Object.entries(models).map(([model, price]) => ({ provider, model, price })),
  );
}

/** `before` is the row as it was when the edit began; null for a new one. */
export function withEditedPrice(
  table: PriceTable,
  before: OwnPrice | null,
  { provider, model, price }: OwnPrice,
): PriceTable {
  const now = table[provider]?.[model];
  const merged = before === null ? price : mergeEdit(before.price, price, now, `price of ${model}`);
  return { ...table, [provider]: { ...table[provider], [model]: merged } };
}

export function withoutPrice(table: PriceTable, { provider, model }: Omit<OwnPrice, "price">): PriceTable {
  const { [model]: removed, ...models } = table[provider] ?? {};
  const { [provider]: changed, ...others } = table;
  if (removed === undefined || changed === undefined) return table;
  return Object.keys(models).length === 0 ? others : { ...table, [provider]: models };
}

export const TIERS = ["flex", "batch", "priority", "ultrafast"] as const;

/** The prices of a model with their names; factors of service tiers follow. Other parts that are no numbers are shown as JSON. */
export function partsOf(price: Readonly<Record<string, unknown>> | ModelPrice): [string, string][] {
  return Object.entries(price).flatMap(([name, value]): [string, string][] => {
    if (name === "tiers" && typeof value === "object" && value !== null) {
      return Object.entries(value).map(([tier, factor]) => [tier, `× ${JSON.stringify(factor)}`]);
    }
    return [[name, typeof value === "number" ? String(value) : JSON.stringify(value)]];
  });
}

/** Endings of names in the list of prices. */
const UNITS: readonly (readonly [ending: string, unit: string])[] = [
  ["_mtok", "per 1M"],
  ["_kcount", "per 1,000"],
];

/** One of the parts as a person reads it. */
export function partText(name: string, value: string): string {
  const found = UNITS.find(([ending]) => name.endsWith(ending));
  if (found === undefined) return `${name} ${value}`;
  const [ending, unit] = found;
  const words = name.slice(0, -ending.length).replaceAll("_", " ");
  return Number.isNaN(Number(value)) ? `${words} ${value}` : `${words} $${value} ${unit}`;
}
