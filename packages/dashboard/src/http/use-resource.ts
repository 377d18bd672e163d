/**
 * A resource of the server, refreshed while a component shows it.
 *
 * Invariants:
 * 1. Only the response of the latest request is shown; earlier requests are aborted.
 * 2. The previous value stays visible during a request, so that a filter or a refresh does not clear the page.
 * 3. A hidden page does not poll; it refreshes when it becomes visible.
 */
import { useCallback, useEffect, useRef, useState } from "react";

export interface Resource<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

export interface ResourceOptions {
  /** Polling interval. If absent, requests are sent only when the key changes or `reload` is called. */
  readonly refreshMs?: number;
}

interface Shown<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
}

/** `key` identifies the resource, usually by its address; null sends no request. */
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
