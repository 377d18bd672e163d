/** A request that the user triggers: one at a time. The error is kept for display. */
import { useCallback, useRef, useState } from "react";

export interface Action<Args extends readonly unknown[]> {
  readonly isBusy: boolean;
  readonly error: Error | null;
  /** Resolves to true on success. A call during another one has no effect. */
  readonly run: (...args: Args) => Promise<boolean>;
  readonly clear: () => void;
}

export function useAction<Args extends readonly unknown[]>(
  act: (...args: Args) => Promise<void>,
): Action<Args> {
  const [state, setState] = useState<{ isBusy: boolean; error: Error | null }>({
    isBusy: false,
    error: null,
  });
  const isRunning = useRef(false);
  const newestAct = useRef(act);
  newestAct.current = act;
  const run = useCallback(async (...args: Args) => {
    if (isRunning.current) return false;
    isRunning.current = true;
    setState({ isBusy: true, error: null });
    try {
      await newestAct.current(...args);
      setState({ isBusy: false, error: null });
      return true;
    } catch (error) {
      setState({ isBusy: false, error: error instanceof Error ? error : new Error(String(error)) });
      return false;
    } finally {
      isRunning.current = false;
    }
  }, []);
  const clear = useCallback(() => setState({ isBusy: false, error: null }), []);
  return { ...state, run, clear };
}
