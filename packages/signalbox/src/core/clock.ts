/** Time as the rest of the code sees it, so that tests can move it. Durations are measured with `performance.now()`, never with this. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/**
 * Milliseconds since the epoch by the process's own count: it agrees with the system's clock when the process starts and then only
 * grows, however that clock is set. For windows that must neither end early nor stay shut because somebody set the time.
 */
export const steadyClock: Clock = { now: () => performance.timeOrigin + performance.now() };
