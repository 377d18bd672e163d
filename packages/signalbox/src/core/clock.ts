/** The wall clock, replaceable in tests. Durations are measured with `performance.now()` instead. */
export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number;
  /** For a clock that is set by hand: calls back when the clock has been moved forward by the delay. Absent: the timers of the process. */
  setTimer?(callback: () => void, delayMs: number): ManualTimer;
}

export interface ManualTimer {
  cancel(): void;
}

export type Timer = NodeJS.Timeout | ManualTimer;

export const systemClock: Clock = { now: () => Date.now() };

/**
 * A monotonic clock that starts at the system time of the process start. Changes of the system time do not affect it: used for time windows
 * that must not become shorter or longer when the system time is changed.
 */
export const steadyClock: Clock = { now: () => performance.timeOrigin + performance.now() };

/** The longest delay of a timer of the process, 25 days. A longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;

/**
 * A timer for due work, which does not keep the process running. A time that has passed meanwhile is due now; one that is too far away for a timer
 * is called early, so the callback looks at the clock. Time limits of running work use timers of the process instead.
 */
export function setTimer(clock: Clock, callback: () => void, delayMs: number): Timer {
  const delay = Math.max(0, Math.min(delayMs, MAX_TIMER_MS));
  return clock.setTimer === undefined ? setTimeout(callback, delay).unref() : clock.setTimer(callback, delay);
}

export function clearTimer(timer: Timer | undefined): void {
  if (timer !== undefined && "cancel" in timer) timer.cancel();
  else clearTimeout(timer);
}
