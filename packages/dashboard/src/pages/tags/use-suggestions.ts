/** Completion for tag keys and values from what is in use, most helpful while typing. */
import { useEffect, useState } from "react";
import { ask, withQuery } from "../../http/api.ts";
import { useAccountPaths } from "../../session/session.ts";

export interface Suggestion {
  readonly text: string;
  readonly count: number;
}

const MAX_SHOWN = 8;
/** Waits for a pause in typing. */
const PAUSE_MS = 120;

/** Keys that begin with `prefix`, or values of `key` that do; `key` null means keys. Null `prefix` asks for nothing. */
export function useSuggestions(key: string | null, prefix: string | null): readonly Suggestion[] {
  const { api } = useAccountPaths();
  const [found, setFound] = useState<readonly Suggestion[]>([]);
  const base = key === null ? api("tags", "keys") : api("tags", "values", key);
  const path = prefix === null || key === "" ? null : withQuery(base, { prefix, counts: true });
  useEffect(() => {
    if (path === null) {
      setFound([]);
      return undefined;
    }
    const abort = new AbortController();
    const timer = setTimeout(() => {
      ask<{ key?: string; value?: string; count: number }[]>(path, { signal: abort.signal }).then(
        ({ result }) =>
          setFound(
            result.slice(0, MAX_SHOWN).map((one) => ({ text: one.key ?? one.value ?? "", count: one.count })),
          ),
        // Completion is a convenience: a half-typed key that is not valid yet is no error to show.
        () => abort.signal.aborted || setFound([]),
      );
    }, PAUSE_MS);
    return () => {
      clearTimeout(timer);
      abort.abort();
    };
  }, [path]);
  return found;
}
