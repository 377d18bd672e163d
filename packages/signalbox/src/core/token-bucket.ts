/** Limits how fast unauthenticated callers create instances: a token bucket that holds one minute's worth. */
export class CreationRate {
  readonly #perMinute: number;
  /** Monotonic milliseconds: a clock that is set back must not stop the refill. */
  readonly #now: () => number;
  #left: number;
  #countedAt: number;

  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
    this.#left = perMinute;
    this.#countedAt = now();
  }

  /** Takes one token and returns 0, or returns the milliseconds until the next token. */
  take(): number {
    const now = this.#now();
    const perMs = this.#perMinute / 60_000;
    this.#left = Math.min(this.#perMinute, this.#left + (now - this.#countedAt) * perMs);
    this.#countedAt = now;
    if (this.#left >= 1) {
      this.#left -= 1;
      return 0;
    }
    return (1 - this.#left) / perMs;
  }
}
