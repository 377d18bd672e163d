/** Limits a rate: `capacity` at once, and then as many again in every `fillMs`. */
export class TokenBucket {
  readonly #capacity: number;
  readonly #perMs: number;
  readonly #now: () => number;
  #left: number;
  #filledAt: number;

  constructor(capacity: number, fillMs: number, now: () => number = () => performance.now()) {
    this.#capacity = capacity;
    this.#perMs = capacity / fillMs;
    this.#now = now;
    this.#left = capacity;
    this.#filledAt = now();
  }

  /** Takes one token and returns 0, or returns the milliseconds until the next token. */
  take(): number {
    this.#fill();
    if (this.#left >= 1) {
      this.#left -= 1;
      return 0;
    }
    return (1 - this.#left) / this.#perMs;
  }

  /** How many tokens there are now. */
  get left(): number {
    this.#fill();
    return this.#left;
  }

  #fill(): void {
    const now = this.#now();
    // A clock that is set back must not take anything away.
    const elapsedMs = Math.max(0, now - this.#filledAt);
    this.#left = Math.min(this.#capacity, this.#left + elapsedMs * this.#perMs);
    this.#filledAt = now;
  }
}
