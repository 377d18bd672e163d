/**
 * What totals are kept by: the token, the token with provider and model, and each key of the metadata.
 *
 * A dimension has a name in the tables, and a call has one value of it or none. Calls without a value of a metadata key are not stored under the
 * key: they are all calls, which the totals of the token have, less those with a value.
 */
import type { UsageDimension } from "./usage-by.ts";

/** Every call has a value; that of a call without a token is empty. */
export const TOKEN = "token";
export const TOKEN_AND_MODEL = "token model";
/** Marks a day on which further keys were not kept. */
export const MORE_KEYS = "";
const METADATA = "metadata:";
const PARTS = "\t";

/** Longer texts are no names of users or teams. They are counted, but not under a name of their own. */
const MAX_VALUE_LENGTH = 256;

interface Labelled {
  readonly provider: string;
  readonly model: string;
  readonly tokenId: string | null;
  readonly metadata: string | null;
}

export function dimensionName(dimension: UsageDimension): string {
  return dimension.kind === "token" ? TOKEN : METADATA + dimension.key;
}

/** Calls `use` for each dimension of a call with its value there; null: without a name of its own. */
export function forEachLabel(
  { provider, model, tokenId, metadata }: Labelled,
  use: (dimension: string, value: string | null) => void,
): void {
  const token = tokenId ?? "";
  use(TOKEN, token);
  use(TOKEN_AND_MODEL, [token, provider, model].join(PARTS));
  if (metadata === null) return;
  const entries: unknown = JSON.parse(metadata);
  if (typeof entries !== "object" || entries === null || Array.isArray(entries)) return;
  for (const [key, entry] of Object.entries(entries)) {
    const value = textOf(entry);
    if (value === null || key.length > MAX_VALUE_LENGTH) continue;
    use(METADATA + key, value.length > MAX_VALUE_LENGTH ? null : value);
  }
}

/** Null if the entry is not a text, a number or a boolean. */
function textOf(entry: unknown): string | null {
  if (typeof entry === "string") return entry;
  return typeof entry === "number" || typeof entry === "boolean" ? String(entry) : null;
}

/** The value of `TOKEN_AND_MODEL`. Only a model, whose name callers choose, may have the separator. */
export function parseTokenAndModel(value: string): readonly [token: string, provider: string, model: string] {
  const [token = "", provider = "", ...model] = value.split(PARTS);
  return [token, provider, model.join(PARTS)];
}
