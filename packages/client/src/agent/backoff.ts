/** How long to wait before coming back. */

export interface BackoffPolicy {
  /** Upper bound of the first delay; doubles with every attempt. Default 250 ms. */
  readonly baseDelayMs: number;
  /** The bound grows no further. Default 10 s: an outage of hours must not keep a page away for long after it ended. */
  readonly maxDelayMs: number;
}

export const DEFAULT_BACKOFF: BackoffPolicy = { baseDelayMs: 250, maxDelayMs: 10_000 };

/** Uniform in [0, min(max, base × 2^(attempt − 1))): clients that lost the same server do not return in step. */
export function fullJitterDelay(
  attempt: number,
  { baseDelayMs, maxDelayMs }: BackoffPolicy,
  random: () => number = Math.random,
): number {
  return random() * Math.min(maxDelayMs, baseDelayMs * 2 ** (attempt - 1));
}
