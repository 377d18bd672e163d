/**
 * Counts the calls of one gateway. Taking is one synchronous step, so however many calls arrive together, no more than the limit
 * pass. Counts live in memory: a restart begins with empty windows. `now` must not step back by more than rounding; callers
 * use a steady clock.
 */
export interface RateLimiter {
  /** Null when the call may pass (and is counted); else the milliseconds after which one may. */
  take(now: number): number | null;
}

/** Windows aligned to the clock as it was when the process started: at most `limit` calls from one multiple of the interval to the next. */
export class FixedWindowLimiter implements RateLimiter {
  readonly #limit: number;
  readonly #intervalMs: number;
  #window = -1;
  #count = 0;

  constructor(limit: number, intervalMs: number) {
    this.#limit = limit;
    this.#intervalMs = intervalMs;
  }

  take(now: number): number | null {
    const window = Math.floor(now / this.#intervalMs);
    // Going back to an earlier window would count the same time twice.
    if (window > this.#window) {
      this.#window = window;
      this.#count = 0;
    }
    if (this.#count >= this.#limit) return (this.#window + 1) * this.#intervalMs - now;
    this.#count += 1;
    return null;
  }
}

/** At most `limit` calls in any stretch of one interval: remembers the time of each call that passed. */
export class SlidingWindowLimiter implements RateLimiter {
  readonly #limit: number;
  readonly #intervalMs: number;
  /** A ring of times, oldest at `#start`; grows with use up to the limit. */
  #times: Float64Array;
  #start = 0;
  #length = 0;

  constructor(limit: number, intervalMs: number) {
    this.#limit = limit;
    this.#intervalMs = intervalMs;
    this.#times = new Float64Array(Math.min(limit, 16));
  }

  take(now: number): number | null {
    while (this.#length > 0 && (this.#times[this.#start] ?? 0) <= now - this.#intervalMs) {
      this.#start = (this.#start + 1) % this.#times.length;
      this.#length -= 1;
    }
    if (this.#length >= this.#limit) return (this.#times[this.#start] ?? now) + this.#intervalMs - now;
    if (this.#length === this.#times.length) this.#grow();
    this.#times[(this.#start + this.#length) % this.#times.length] = now;
    this.#length += 1;
    return null;
  }

  #grow(): void {
    const larger = new Float64Array(Math.min(this.#limit, this.#times.length * 2));
    for (let i = 0; i < this.#length; i++) {
      larger[i] = this.#times[(this.#start + i) % this.#times.length] ?? 0;
    }
    this.#times = larger;
    this.#start = 0;
  }
}
