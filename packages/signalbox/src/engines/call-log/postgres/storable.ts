/** Values that PostgreSQL accepts: a text without the character U+0000 and without half a surrogate pair, an integer without a fraction. */

const REPLACEMENT = "\uFFFD";
/** Escapes of U+0000 and of surrogates. PostgreSQL's JSON functions refuse them, except for a complete pair. */
const REFUSED_ESCAPE = /\\u(?:0000|d[89a-f])/i;

export function storableText(text: string): string {
  const complete = text.isWellFormed() ? text : text.toWellFormed();
  return complete.includes("\0") ? complete.replaceAll("\0", REPLACEMENT) : complete;
}

/** The text is valid JSON. A single row that PostgreSQL cannot parse would make every filter on metadata fail. */
export function storableJson(text: string): string {
  if (!REFUSED_ESCAPE.test(text)) return storableText(text);
  const storable = (value: unknown): unknown => (typeof value === "string" ? storableText(value) : value);
  return JSON.stringify(JSON.parse(text), (_, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).map(([key, entry]) => [storableText(key), storable(entry)]))
      : storable(value),
  );
}

export function storableInteger(value: number): number {
  if (Number.isSafeInteger(value)) return value;
  return Number.isNaN(value)
    ? 0
    : Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, Math.trunc(value)));
}
