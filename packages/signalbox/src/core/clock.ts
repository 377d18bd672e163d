/** Time as the rest of the code sees it, so that tests can move it. Durations are measured with `performance.now()`, never with this. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };
