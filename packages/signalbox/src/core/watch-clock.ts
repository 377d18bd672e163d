/**
 * Notices that the wall clock was set, ahead or back, or that the machine was suspended. Timers notice neither: they count time that the process was
 * running. What is due by the wall clock has to be looked at again.
 */
import type { Clock } from "./clock.ts";
import { repeat, type Repetition } from "./repeat.ts";

const LOOK_MS = 1000;
/** Far more than a clock that is adjusted gradually gains in a second, and less than a person notices. */
const STEP_MS = 500;

export function watchClock(
  clock: Clock,
  steadyClock: Clock,
  onStep: () => void,
  onError: (error: unknown) => void,
): Repetition {
  const difference = () => clock.now() - steadyClock.now();
  let known = difference();
  return repeat(
    LOOK_MS,
    () => {
      const found = difference();
      if (Math.abs(found - known) < STEP_MS) return;
      known = found;
      onStep();
    },
    onError,
  );
}
