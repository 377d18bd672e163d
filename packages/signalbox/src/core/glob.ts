/**
 * Names with `*` for any text, also none. Letters match in either case: a provider may accept `GPT-4o` for `gpt-4o`, and an excluded name must
 * stay excluded.
 *
 * A match searches each literal part once, from left to right, and never goes back, so no pattern makes it slow. A regular expression of the same
 * pattern can need exponential time.
 */

export interface Glob {
  /** The literal texts between the `*`, in lower case; one part means that the name has no `*`. */
  readonly parts: readonly string[];
}

export function parseGlob(pattern: string): Glob {
  return { parts: pattern.toLowerCase().split("*") };
}

/** `text` in lower case. */
export function matchesGlob({ parts }: Glob, text: string): boolean {
  const first = parts[0] ?? "";
  if (parts.length === 1) return text === first;
  const last = parts[parts.length - 1] ?? "";
  if (text.length < first.length + last.length || !text.startsWith(first) || !text.endsWith(last))
    return false;
  const end = text.length - last.length;
  let from = first.length;
  for (let i = 1; i < parts.length - 1; i++) {
    const part = parts[i] ?? "";
    const at = text.indexOf(part, from);
    // The leftmost place leaves the most room for the other parts.
    if (at === -1 || at + part.length > end) return false;
    from = at + part.length;
  }
  return true;
}

/**
 * True if every text that `inner` matches is matched by `outer`. The pattern of `inner` is matched as a text: its `*` is no part of a literal of
 * `outer`, so only a `*` of `outer` can match it.
 */
export function coversGlob(outer: Glob, inner: Glob): boolean {
  return matchesGlob(outer, inner.parts.join("*"));
}

/** True for a pattern that matches every text. */
export function matchesAll({ parts }: Glob): boolean {
  return parts.length > 1 && parts.every((part) => part === "");
}
