/**
 * What a tag may be: the rules a server enforces and a browser can check before it asks.
 *
 * Characters are Unicode code points, nothing is normalised, and case matters. A key is made of Unicode letters and decimal digits,
 * `_`, `.` and `-`; `__proto__` and `constructor` are ordinary keys, so sets of tags are maps here and never plain objects.
 */
import { SignalboxError } from "./signalbox-error.ts";

export const TAG_LIMITS = {
  /** Code points of a key. */
  keyLength: 256,
  /** Code points of a value. */
  valueLength: 1024,
  /** `tag` parameters of one request. */
  filters: 20,
  /** Alternatives within one filter. */
  valuesPerFilter: 10,
  /** `id` parameters of one request. */
  ids: 50,
  /** Code points of the `name` parameter. */
  nameLength: 256,
  /** Elements of a page. */
  page: 100,
} as const;

/** A resource's tags; iteration order is that of the canonical form once it has been through `canonicalTags`. */
export type Tags = ReadonlyMap<string, string>;

const KEY = /^[\p{L}\p{Nd}_.-]+$/u;

/** Throws 1011, then 1014; an empty key is an invalid one. */
export function checkTagKey(key: string): void {
  if (isLongerThan(key, TAG_LIMITS.keyLength)) throw new SignalboxError("tags_key_too_long");
  if (!KEY.test(key)) throw new SignalboxError("tags_invalid_key");
}

/** Throws 1012. */
export function checkTagValue(value: string): void {
  if (isLongerThan(value, TAG_LIMITS.valueLength)) throw new SignalboxError("tags_value_too_long");
}

/** Every key's length, then every key's characters, then every value: the order the contract gives for writes. */
export function checkTags(keys: Iterable<string>, values: Iterable<string>): void {
  let hasInvalidKey = false;
  for (const key of keys) {
    if (isLongerThan(key, TAG_LIMITS.keyLength)) throw new SignalboxError("tags_key_too_long");
    hasInvalidKey ||= !KEY.test(key);
  }
  if (hasInvalidKey) throw new SignalboxError("tags_invalid_key");
  for (const value of values) checkTagValue(value);
}

/** Counts code points only when the number of UTF-16 units leaves it open. */
export function isLongerThan(text: string, codePoints: number): boolean {
  if (text.length <= codePoints) return false;
  if (text.length > codePoints * 2) return true;
  let count = 0;
  for (const _ of text) count += 1;
  return count > codePoints;
}

/**
 * The one text of a set of tags (RFC 8785): members in order of UTF-16 code units, no space. Two equal sets have equal texts, which
 * is what the etag hashes and what clients that compare byte for byte rely on.
 */
export function canonicalTags(tags: Tags): string {
  const keys = [...tags.keys()].sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(tags.get(key))}`).join(",")}}`;
}

/** Reads what `canonicalTags` wrote. */
export function parseCanonicalTags(text: string): Map<string, string> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
}

/** How texts are compared when case does not count: by their lower-case form, as Unicode defines it without regard to a language. */
export function foldCase(text: string): string {
  return text.toLowerCase();
}
