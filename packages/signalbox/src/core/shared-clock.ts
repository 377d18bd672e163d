/** The clock of PostgreSQL, as far as this node knows it: all nodes must agree about the beginning of a window. */
import type { Clock } from "./clock.ts";

export class SharedClock implements Clock {
  readonly #clock: Clock;
  #offsetMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  now(): number {
    return this.#clock.now() + this.#offsetMs;
  }

  /** PostgreSQL read its clock between `sentAt` and now, in the time of the local clock. */
  adjust(sentAt: number, remote: number): void {
    const receivedAt = this.#clock.now();
    const [lowest, highest] = [remote - receivedAt, remote - sentAt];
    // Inside of the bounds nothing is known better.
    if (this.#offsetMs < lowest || this.#offsetMs > highest)
      this.#offsetMs = Math.round((lowest + highest) / 2);
  }

  get local(): Clock {
    return this.#clock;
  }
}
