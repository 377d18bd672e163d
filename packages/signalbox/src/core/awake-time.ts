/** Waiting for something that others must do while this process runs. */
import { setTimeout as sleep } from "node:timers/promises";

const STEPS = 10;

/**
 * Like a sleep, but a pause of the process (a stopped process, a machine that is moved) counts as one step at most. With one timer, the time would be over
 * at the moment at which the process continues, and others would have had none of it.
 */
export async function awakeTime(ms: number): Promise<void> {
  for (let step = 0; ms > 0 && step < STEPS; step++) await sleep(ms / STEPS);
}

/**
 * Like `setTimeout`, for what others must do meanwhile. With one timer, what has arrived during a pause would count as missing, because timers run before
 * the sockets are read. Does not keep the process running. Returns the function that cancels it.
 */
export function afterAwakeTime(ms: number, onOver: () => void): () => void {
  let timer: NodeJS.Timeout | undefined;
  const wait = (steps: number) => {
    timer = setTimeout(() => (steps > 1 ? wait(steps - 1) : onOver()), ms / STEPS).unref();
  };
  wait(STEPS);
  return () => clearTimeout(timer);
}

/** Like `AbortSignal.timeout`, for an answer of another process. */
export function awakeSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  afterAwakeTime(ms, () => controller.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError")));
  return controller.signal;
}
