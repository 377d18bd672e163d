/** Safe looks into payloads: own properties only, and never a surprise type. */

/** The value at `a.b.c`, or undefined. Inherited names such as `constructor` are not fields. */
export function fieldAt(payload: unknown, path: string): unknown {
  let value = payload;
  for (const key of path.split(".")) {
    if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return undefined;
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

/** Text or a finite number as text; null for everything else, also for the empty text. */
export function textAt(payload: unknown, path: string): string | null {
  return asText(fieldAt(payload, path));
}

export function asText(value: unknown): string | null {
  if (typeof value === "string") return value === "" ? null : value;
  return typeof value === "number" && Number.isFinite(value) ? String(value) : null;
}

/** The first of several places that holds text. */
export function firstTextAt(payload: unknown, ...paths: readonly string[]): string | null {
  for (const path of paths) {
    const text = textAt(payload, path);
    if (text !== null) return text;
  }
  return null;
}

export function firstLine(text: string | null): string | null {
  return text === null ? null : (text.split("\n", 1)[0] ?? null);
}

/** Joins what is there: `words("Issue", null, "opened")` is `Issue opened`. */
export function words(...parts: readonly (string | null | undefined)[]): string {
  return parts.filter((part) => part != null && part !== "").join(" ");
}
