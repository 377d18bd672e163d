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
