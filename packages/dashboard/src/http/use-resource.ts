/**
 * A resource of the server, refreshed while a component shows it.
 *
 * Invariants:
 * 1. Only the response of the latest request is shown; earlier requests are aborted.
 * 2. The previous value stays visible during a request, so that a filter or a refresh does not clear the page.
 * 3. After a failure, only a value of the same resource stays, and the resource is read again when the connection to the service is back.
 * 4. A hidden page does not poll; it refreshes when it becomes visible.
 * 5. A poll does not abort a request that is still running: a response slower than the interval would never be shown.
 * 6. A request that takes longer than the interval is repeated after many times its duration (`nextPollAt`): a page that is left open must not keep
 *    the service busy.
 */
import { useCallback, useEffect, useRef, useState } from "react";
import { ApiError } from "./api.ts";
import { connectionLost, RECONNECTED } from "./connection.ts";
import { nextPollAt } from "./next-poll.ts";

export interface Resource<T> {
  readonly value: T | undefined;
  readonly error: Error | null;
  readonly isLoading: boolean;
  readonly reload: () => void;
}

export interface ResourceOptions {
  /** Polling interval. If absent, requests are sent only when the key changes or `reload` is called. */
  readonly refreshMs?: number;
  /** Names the resource if several keys are of it, such as those of more or fewer pages of a list. Default: the key. */
  readonly identity?: string | null;
}

interface Shown<T> {
  readonly value: T | undefined;
  /** The identity of the resource that the value belongs to. */
  readonly valueOf: string | null;
  readonly error: Error | null;
  readonly isLoading: boolean;
}

/** `key` identifies the resource, usually by its address; null sends no request. */
export function useResource<T>(
  key: string | null,
  load: (signal: AbortSignal) => Promise<T>,
  { refreshMs, identity = key }: ResourceOptions = {},
): Resource<T> {
  const [shown, setShown] = useState<Shown<T>>({
    value: undefined,
    valueOf: null,
    error: null,
    isLoading: key !== null,
  });
  const [turn, setTurn] = useState(0);
  const newestLoad = useRef(load);
  newestLoad.current = load;
  const isRunning = useRef(false);
  /** On the clock of `performance.now`. */
  const pollAt = useRef(0);
  const reload = useCallback(() => setTurn((n) => n + 1), []);

  useEffect(() => {
    if (key === null) return undefined;
    const abort = new AbortController();
    setShown((before) => ({ ...before, isLoading: true }));
    isRunning.current = true;
    const startedAt = performance.now();
    const settle = (next: (before: Shown<T>) => Shown<T>) => {
      if (abort.signal.aborted) return;
      isRunning.current = false;
      pollAt.current = nextPollAt(startedAt, performance.now(), refreshMs ?? 0);
      setShown(next);
    };
    newestLoad.current(abort.signal).then(
      (value) => settle(() => ({ value, valueOf: identity, error: null, isLoading: false })),
      (error: unknown) => {
        // Also a response that broke off in its body.
        if (!abort.signal.aborted && error instanceof ApiError && error.status === 0) connectionLost();
        settle((before) => ({
          value: before.valueOf === identity ? before.value : undefined,
          valueOf: identity,
          error: error instanceof Error ? error : new Error(String(error)),
          isLoading: false,
        }));
      },
    );
    return () => abort.abort();
  }, [key, turn]);

  // What could not be read while the service was away is read when it is back.
  const hasFailed = shown.error !== null;
  useEffect(() => {
    if (!hasFailed || key === null) return undefined;
    addEventListener(RECONNECTED, reload);
    return () => removeEventListener(RECONNECTED, reload);
  }, [hasFailed, key, reload]);

  useEffect(() => {
    if (refreshMs === undefined || key === null) return undefined;
    const refresh = () => {
      const isDue = !isRunning.current && performance.now() >= pollAt.current;
      if (document.visibilityState === "visible" && isDue) reload();
    };
    const timer = setInterval(refresh, refreshMs);
    document.addEventListener("visibilitychange", refresh);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", refresh);
    };
  }, [key, refreshMs, reload]);

  const { value, error, isLoading } = shown;
  return { value, error, isLoading, reload };
}
