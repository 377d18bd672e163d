/**
 * The filter language of the `tag` parameter: parser, formatter, and evaluation against the tags of one resource.
 *
 *   key            has the key                    !key            lacks the key
 *   key=a          has the key with this value    key!=a          does not have the key with this value (also: lacks the key)
 *   key=a,b        … with one of these values     key!=a,b        … with none of these values
 *
 * The key ends at the first `=` or `!=`. In values `\,` is a comma and `\\` a backslash; a backslash before any other character is
 * literal. `key=` is the empty value. The input is already URL-decoded.
 */
import { SignalboxError } from "./signalbox-error.ts";
import { checkTagKey, checkTagValue, foldCase, TAG_LIMITS, type Tags } from "./tag-rules.ts";

export type TagFilter =
  | { readonly kind: "has"; readonly key: string }
  | { readonly kind: "lacks"; readonly key: string }
  | { readonly kind: "in"; readonly key: string; readonly values: readonly string[] }
  | { readonly kind: "not_in"; readonly key: string; readonly values: readonly string[] };

/** Parses all filters of a request. Throws 1010 for too many filters, then the first error of a filter. */
export function parseTagFilters(texts: readonly string[]): TagFilter[] {
  if (texts.length > TAG_LIMITS.filters) throw new SignalboxError("tags_too_many_filters");
  return texts.map(parseTagFilter);
}

/** Parses one filter. Throws 1007, 1011, 1014, 1013 or 1012, checked in this order. */
export function parseTagFilter(text: string): TagFilter {
  const isNegated = text.startsWith("!");
  const rest = isNegated ? text.slice(1) : text;
  const equals = rest.indexOf("=");
  if (equals === -1) {
    if (rest === "") throw new SignalboxError("tags_invalid_filter");
    checkTagKey(rest);
    return { kind: isNegated ? "lacks" : "has", key: rest };
  }
  const isExclusion = rest.charAt(equals - 1) === "!";
  const key = rest.slice(0, isExclusion ? equals - 1 : equals);
  if (isNegated || key === "") throw new SignalboxError("tags_invalid_filter");
  checkTagKey(key);
  const values = splitValues(rest.slice(equals + 1));
  if (values.length > TAG_LIMITS.valuesPerFilter) throw new SignalboxError("tags_too_many_values");
  values.forEach(checkTagValue);
  return { kind: isExclusion ? "not_in" : "in", key, values };
}

/** Formats a filter so that `parseTagFilter` returns it. */
export function formatTagFilter(filter: TagFilter): string {
  switch (filter.kind) {
    case "has":
      return filter.key;
    case "lacks":
      return `!${filter.key}`;
    case "in":
      return `${filter.key}=${filter.values.map(escapeValue).join(",")}`;
    case "not_in":
      return `${filter.key}!=${filter.values.map(escapeValue).join(",")}`;
  }
}

/** True if the tags satisfy all filters. The reference implementation for every index. */
export function matchesTags(filters: readonly TagFilter[], tags: Tags, isCaseInsensitive = false): boolean {
  return filters.every((filter) =>
    isCaseInsensitive ? matchesFolded(filter, tags) : matchesExactly(filter, tags),
  );
}

function matchesExactly(filter: TagFilter, tags: Tags): boolean {
  const value = tags.get(filter.key);
  switch (filter.kind) {
    case "has":
      return value !== undefined;
    case "lacks":
      return value === undefined;
    case "in":
      return value !== undefined && filter.values.includes(value);
    case "not_in":
      return value === undefined || !filter.values.includes(value);
  }
}

/** A resource can have keys that differ only in case. A positive filter requires one matching key, a negative filter excludes all. */
function matchesFolded(filter: TagFilter, tags: Tags): boolean {
  const key = foldCase(filter.key);
  const found = [...tags].filter(([name]) => foldCase(name) === key).map(([, value]) => foldCase(value));
  if (filter.kind === "has") return found.length > 0;
  if (filter.kind === "lacks") return found.length === 0;
  const wanted = filter.values.map(foldCase);
  const isAmong = found.some((value) => wanted.includes(value));
  return filter.kind === "in" ? isAmong : !isAmong;
}

function splitValues(text: string): string[] {
  if (!text.includes("\\")) return text.split(",");
  const values: string[] = [];
  let value = "";
  for (let i = 0; i < text.length; i++) {
    const character = text.charAt(i);
    const next = text.charAt(i + 1);
    if (character === "\\" && (next === "," || next === "\\")) {
      value += next;
      i += 1;
    } else if (character === ",") {
      values.push(value);
      value = "";
    } else {
      value += character;
    }
  }
  values.push(value);
  return values;
}

function escapeValue(value: string): string {
  return value.replaceAll(/[\\,]/g, String.raw`\$&`);
}
