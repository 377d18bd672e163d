/** The delay before a reconnection. */

export interface BackoffPolicy {
  /** Upper bound of the first delay; doubled for every attempt. Default 250 ms. */
  readonly baseDelayMs: number;
  /** Maximum of the bound. Default 10 s: short enough to reconnect soon after a long outage. */
  readonly maxDelayMs: number;
}

export const DEFAULT_BACKOFF: BackoffPolicy = { baseDelayMs: 250, maxDelayMs: 10_000 };

/** Uniform in [0, min(max, base × 2^(attempt − 1))), so that clients of one server do not reconnect at the same time. */
export function fullJitterDelay(
  attempt: number,
  { baseDelayMs, maxDelayMs }: BackoffPolicy,
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxDelayMs, baseDelayMs * 2 ** (attempt - 1));
}
