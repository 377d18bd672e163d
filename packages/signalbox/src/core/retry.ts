/** Retries with exponential backoff and full jitter. An abort of the signal ends the loop immediately. */
import { setTimeout as sleep } from "node:timers/promises";

export interface RetryPolicy {
  /** Maximum number of attempts, at least 1. */
  readonly maxAttempts: number;
  readonly baseDelayMs: number;
  readonly maxDelayMs: number;
}

export interface RetryOptions extends RetryPolicy {
  readonly signal?: AbortSignal;
  /** Returns false for an error that ends the loop. Default: every error is retried. */
  readonly isRetryable?: (error: unknown, nextAttempt: number) => boolean;
  readonly random?: () => number;
}

export async function retry<T>(attempt: (number: number) => Promise<T>, options: RetryOptions): Promise<T> {
  for (let number = 1; ; number++) {
    options.signal?.throwIfAborted();
    try {
      return await attempt(number);
    } catch (error) {
      const isLast = number >= options.maxAttempts;
      if (isLast || options.isRetryable?.(error, number + 1) === false) throw error;
      const delay = fullJitterDelay(number, options, options.random);
      await sleep(delay, undefined, options.signal === undefined ? {} : { signal: options.signal });
    }
  }
}

/** Uniform in [0, min(max, base × 2^(attempt − 1))), so that clients which failed together do not retry together. */
export function fullJitterDelay(
  attempt: number,
  policy: Pick<RetryPolicy, "baseDelayMs" | "maxDelayMs">,
  random: () => number = Math.random,
): number {
  return random() * Math.min(policy.maxDelayMs, policy.baseDelayMs * 2 ** (attempt - 1));
}
