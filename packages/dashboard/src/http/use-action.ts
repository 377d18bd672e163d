/** Something the user does to the server: one at a time, with what went wrong kept for showing. */
import { useCallback, useRef, useState } from "react";

export interface Action<Args extends readonly unknown[]> {
  readonly isBusy: boolean;
  readonly error: Error | null;
  /** Resolves true when it worked; a second call while one runs does nothing. */
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
