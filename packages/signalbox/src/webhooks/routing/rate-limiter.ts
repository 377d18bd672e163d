/**
 * Spreads attempts of a route evenly over its period: a bucket that is refilled continuously and holds what one second allows, at least one attempt.
 *
 * Invariant: in any time of t ms at most t × limit / period + capacity attempts begin. The bucket is empty at first, so that neither a restart nor
 * another node that takes the route over allows more.
 */
import type { Clock } from "../../core/clock.ts";

export class RateLimiter {
  readonly #clock: Clock;
  readonly #perMs: number;
  readonly #capacity: number;
  #filled = 0;
  #at: number;

  constructor(clock: Clock, limit: number, periodMs: number) {
    this.#clock = clock;
    this.#perMs = limit / periodMs;
    this.#capacity = Math.max(1, Math.floor(this.#perMs * 1000));
    this.#at = clock.now();
  }

  /** How many attempts may begin now. */
  get available(): number {
    this.#refill();
    // Sums of fractions are a little less than a whole number.
    return Math.floor(this.#filled + 1e-9);
  }

  /** Milliseconds until an attempt may begin. */
  get waitMs(): number {
    this.#refill();
    return this.#filled + 1e-9 >= 1 ? 0 : Math.ceil((1 - this.#filled) / this.#perMs);
  }

  take(count: number): void {
    this.#refill();
    this.#filled -= count;
  }

  #refill(): void {
    const now = this.#clock.now();
    // A clock that was set back must not stop the route.
    const passed = Math.max(0, now - this.#at);
    this.#at = now;
    this.#filled = Math.min(this.#capacity, this.#filled + passed * this.#perMs);
  }
}
