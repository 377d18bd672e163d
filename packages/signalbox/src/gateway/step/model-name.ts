/**
 * What may be the name of a model. Prices, rules and totals are looked up by it and kept by it: a text of a megabyte would take seconds for each, and
 * stay in memory.
 */

/** No model has a longer name. */
export const MAX_MODEL_LENGTH = 512;

/** The name; null for what cannot be one. */
export function toModelName(value: unknown): string | null {
  return typeof value === "string" && value.length <= MAX_MODEL_LENGTH ? value : null;
}
