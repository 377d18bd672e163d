/**
 * Something read from the server and kept fresh while a component shows it.
 *
 * Invariants:
 * 1. Only the newest request's answer is shown; an older one is aborted.
 * 2. What was shown stays on screen while something newer loads, so a filter or a refresh never blanks the page.
 * 3. A hidden page does not poll; it refreshes when it is looked at again.
 */
import { useCallback, useEffect, useRef, useState } from "react";

export interface Resource<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

export interface ResourceOptions {
  /** Poll this often; absent: only when the key changes or `reload` is called. */
  readonly refreshMs?: number;
}

interface Shown<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
}

/** `key` names what is read (usually its address); null reads nothing. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { refreshMs }: ResourceOptions = {},
): Resource<T> {
  const [shown, setShown] = useState<Shown<T>>({ value: undefined, error: null, isLoading: key !== null });
  const [turn, setTurn] = useState(0);
  const newestLoad = useRef(load);
  newestLoad.current = load;
  const reload = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    setShown((before) => ({ ...before, isLoading: true }));
    newestLoad.current(abort.signal).then(
      (value) => abort.signal.aborted || setShown({ value, error: null, isLoading: false }),
      (error: unknown) =>
        abort.signal.aborted ||
        setShown((before) => ({
          value: before.value,
          error: error instanceof Error ? error : new Error(String(error)),
          isLoading: false,
        })),
    );
    return () => abort.abort();
  }, [key, turn]);

  useEffect(() => {
    if (refreshMs === undefined || key === null) return undefined;
    const refresh = () => {
      if (document.visibilityState === "visible") reload();
    };
    const timer = setInterval(refresh, refreshMs);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [key, refreshMs, reload]);

  return { ...shown, reload };
}
