/** Calls of several models with the same request, at the same time. Each has its own answer or failure; a new run replaces them all. */
import { useCallback, useEffect, useRef, useState } from "react";
import { type Outcome, type PlaygroundCall, runCall } from "./run-call.ts";

export interface Run {
  readonly model: string;
  readonly isRunning: boolean;
  readonly outcome: Outcome | null;
  readonly failure: Error | null;
}

export interface Runs {
  readonly runs: readonly Run[];
  readonly isRunning: boolean;
  /** Has no effect while calls are running. */
  readonly start: (calls: readonly { readonly model: string; readonly call: PlaygroundCall }[]) => void;
  readonly stop: () => void;
  readonly clear: () => void;
}

export function useRuns(): Runs {
  const [runs, setRuns] = useState<readonly Run[]>([]);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const start = useCallback<Runs["start"]>((calls) => {
    if (running.current !== null) return;
    const abort = new AbortController();
    running.current = abort;
    setRuns(calls.map(({ model }) => ({ model, isRunning: true, outcome: null, failure: null })));
    const change = (at: number, part: Partial<Run>) =>
      setRuns((before) => before.map((run, i) => (i === at ? { ...run, ...part } : run)));
    const all = calls.map(async ({ call }, at) => {
      try {
        const outcome = await runCall(call, abort.signal, (so) => change(at, { outcome: so }));
        change(at, { outcome, isRunning: false });
      } catch (error) {
        const failure = error instanceof Error ? error : new Error(String(error));
        change(at, { isRunning: false, ...(abort.signal.aborted ? {} : { failure }) });
      }
    });
    void Promise.all(all).then(() => {
      running.current = null;
    });
  }, []);
  const stop = useCallback(() => running.current?.abort(), []);
  const clear = useCallback(() => setRuns([]), []);
  return { runs, isRunning: runs.some(({ isRunning }) => isRunning), start, stop, clear };
}
