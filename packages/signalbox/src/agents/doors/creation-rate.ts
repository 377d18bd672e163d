/** How fast strangers may create instances: a bucket that holds a minute's worth and is filled evenly. */
export class CreationRate {
  readonly #perMinute: number;
  /** Monotonic milliseconds: a clock that is set back must not close the door. */
  readonly #now: () => number;
  #left: number;
  #countedAt: number;

  constructor(perMinute: number, now: () => number = () => performance.now()) {
    this.#perMinute = perMinute;
    this.#now = now;
    this.#left = perMinute;
    this.#countedAt = now();
  }

  /** Takes one and returns 0, or returns how many milliseconds it is until there is one. */
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
