/** Suggestions for tag keys and values, from the tags in use. */
import { useEffect, useState } from "react";
import { request, withQuery } from "../../http/api.ts";
import { useAccountPaths } from "../../session/session.ts";

export interface Suggestion {
  readonly text: string;
  readonly count: number;
}

const MAX_SHOWN = 8;
/** Delay after the last keystroke before a request is sent. */
const DEBOUNCE_MS = 120;

/** Returns keys (`key` is null) or values of `key` that start with `prefix`. If `prefix` is null, no request is sent. */
export function useSuggestions(key: string | null, prefix: string | null): readonly Suggestion[] {
  const { api } = useAccountPaths();
  const [suggestions, setSuggestions] = useState<readonly Suggestion[]>([]);
  const base = key === null ? api("tags", "keys") : api("tags", "values", key);
  const path = prefix === null || key === "" ? null : withQuery(base, { prefix, counts: true });
  useEffect(() => {
    if (path === null) {
      setSuggestions([]);
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      request<{ key?: string; value?: string; count: number }[]>(path, { signal: abort.signal }).then(
        ({ result }) =>
          setSuggestions(
            result.slice(0, MAX_SHOWN).map((one) => ({ text: one.key ?? one.value ?? "", count: one.count })),
          ),
        // Errors are ignored: a partly typed key may be invalid.
        () => abort.signal.aborted || setSuggestions([]),
      );
    }, DEBOUNCE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path]);
  return suggestions;
}
