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
 * Like `AbortSignal.timeout`, for an answer of another process: a pause of this process counts as one step at most. With one timer, an answer that has
 * arrived during the pause would count as missing, because timers run before the sockets are read.
 */
export function awakeSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  const wait = (steps: number) => {
    setTimeout(() => {
      if (steps > 1) wait(steps - 1);
      else controller.abort(new DOMException(`no answer within ${ms} ms`, "TimeoutError"));
    }, ms / STEPS).unref();
  };
  wait(STEPS);
  return controller.signal;
}
