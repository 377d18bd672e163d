/** Retry settings of a queue item or schedule, validated when the work is added. */
import { fullJitterDelay, type RetryPolicy } from "../../core/retry.ts";

export interface RetryOptions {
  /** Attempts in all, at least 1. Default 3. */
  readonly maxAttempts?: number;
  /** Upper bound of the first delay; the bound doubles with each attempt. Default 100 ms. */
  readonly baseDelayMs?: number;
  /** Upper bound of any delay. Default 3,000 ms. */
  readonly maxDelayMs?: number;
}

/** A policy with fixed delays between attempts instead of bounds; the last one repeats. */
export interface RetryPlan extends RetryOptions {
  readonly delaysMs?: readonly number[];
}

/** Added to a fixed delay at random, so that work that failed together does not run together again. */
const PLAN_JITTER = 0.1;

const DEFAULTS: RetryPolicy = { maxAttempts: 3, baseDelayMs: 100, maxDelayMs: 3000 };

/** The stored form; null for the defaults. Throws a `RangeError` for invalid settings. */
export function toStoredRetry(options: RetryPlan | undefined): string | null {
  return options === undefined ? null : JSON.stringify(toRetryPolicy(options));
}

/** Throws a `RangeError` for invalid settings. */
export function toRetryPolicy<Options extends RetryOptions>(options: Options): Options & RetryPolicy {
  const policy = { ...DEFAULTS, ...options };
  if (!Number.isInteger(policy.maxAttempts) || policy.maxAttempts < 1) {
    throw new RangeError("retry.maxAttempts must be an integer of at least 1");
  }
  if (!(policy.baseDelayMs > 0)) throw new RangeError("retry.baseDelayMs must be greater than 0");
  if (!(policy.maxDelayMs > 0)) throw new RangeError("retry.maxDelayMs must be greater than 0");
  if (policy.baseDelayMs > policy.maxDelayMs) {
    throw new RangeError("retry.baseDelayMs must not be greater than retry.maxDelayMs");
  }
  return policy;
}

export function fromStoredRetry(stored: string | null): RetryPolicy & RetryPlan {
  return stored === null ? DEFAULTS : { ...DEFAULTS, ...(JSON.parse(stored) as RetryPlan) };
}

/** How long to wait after this many attempts. */
export function retryDelay(
  attempts: number,
  policy: RetryPolicy & RetryPlan,
  random: () => number = Math.random,
): number {
  const { delaysMs = [] } = policy;
  const fixed = delaysMs[Math.min(attempts, delaysMs.length) - 1];
  return Math.ceil(
    fixed === undefined ? fullJitterDelay(attempts, policy, random) : fixed * (1 + PLAN_JITTER * random()),
  );
}

/** The number of the attempt that follows. One that the storage has ended is repeated under its number. */
export function nextAttempt(attempts: number, isResumed: boolean): number {
  return isResumed && attempts > 0 ? attempts : attempts + 1;
}
