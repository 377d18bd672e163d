/** The wall clock, replaceable in tests. Durations are measured with `performance.now()` instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
}

export const systemClock: Clock = { now: () => Date.now() };

/**
 * A monotonic clock that starts at the system time of the process start. Changes of the system time do not affect it: used for time windows
 * that must not become shorter or longer when the system time is changed.
 */
export const steadyClock: Clock = { now: () => performance.timeOrigin + performance.now() };
