/**
 * The rules for tags. The server enforces them; a browser can check them before a request.
 *
 * Characters are Unicode code points, without normalization, and case-sensitive. A key consists of Unicode letters, decimal digits, `_`, `.`
 * and `-`. `__proto__` and `constructor` are valid keys, so tags are maps and never plain objects.
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

/** The tags of a resource. */
export type Tags = ReadonlyMap<string, string>;

const KEY = /^[\p{L}\p{Nd}_.-]+$/u;

/** Throws 1011, then 1014. An empty key is invalid. */
export function checkTagKey(key: string): void {
  if (isLongerThan(key, TAG_LIMITS.keyLength)) throw new SignalboxError("tags_key_too_long");
  if (!KEY.test(key)) throw new SignalboxError("tags_invalid_key");
}

/** Throws 1012. */
export function checkTagValue(value: string): void {
  if (isLongerThan(value, TAG_LIMITS.valueLength)) throw new SignalboxError("tags_value_too_long");
}

/** Checks the length of all keys, then the characters of all keys, then all values: the order of errors that the contract requires. */
export function checkTags(keys: Iterable<string>, values: Iterable<string>): void {
  let hasInvalidKey = false;
  for (const key of keys) {
    if (isLongerThan(key, TAG_LIMITS.keyLength)) throw new SignalboxError("tags_key_too_long");
    hasInvalidKey ||= !KEY.test(key);
  }
  if (hasInvalidKey) throw new SignalboxError("tags_invalid_key");
  for (const value of values) checkTagValue(value);
}

/** Counts code points only if the number of UTF-16 units does not decide. */
export function isLongerThan(text: string, codePoints: number): boolean {
  if (text.length <= codePoints) return false;
  if (text.length > codePoints * 2) return true;
  let count = 0;
  for (const _ of text) count += 1;
  return count > codePoints;
}

/**
 * The canonical JSON of tags (RFC 8785): members sorted by UTF-16 code units, no whitespace. Equal tags have equal text, which the etag
 * hashes and clients may compare byte for byte.
 */
export function canonicalTags(tags: Tags): string {
  const keys = [...tags.keys()].sort();
  return `{${keys.map((key) => `${JSON.stringify(key)}:${JSON.stringify(tags.get(key))}`).join(",")}}`;
}

/** Parses the output of `canonicalTags`. */
export function parseCanonicalTags(text: string): Map<string, string> {
  return new Map(Object.entries(JSON.parse(text) as Record<string, string>));
}

/** The form for case-insensitive comparison: lower case, independent of the locale. */
export function foldCase(text: string): string {
  return text.toLowerCase();
}
