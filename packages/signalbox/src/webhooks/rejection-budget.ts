/**
 * Which rejected deliveries are listed, and so written to the database: a few a second. The others are counted. Anybody can send them, so that their
 * rate must not decide what the service writes.
 *
 * Invariants:
 * 1. Of all sources together, at most `BURST` are listed at once and `PER_SECOND` later on, and in addition one of each source in `QUIET_MS`: a flood
 *    on one source must not hide the rejected delivery of another one.
 * 2. Every rejected delivery is listed, or counted for its source until the next listed one.
 */
import type { Clock } from "../core/clock.ts";
import { TokenBucket } from "../core/token-bucket.ts";

const PER_SECOND = 5;
const BURST = 20;
const QUIET_MS = 10_000;

interface SourceCount {
  listedAt: number;
  unlisted: number;
}

export class RejectionBudget {
  readonly #clock: Clock;
  readonly #sources = new Map<string, SourceCount>();
  readonly #bucket: TokenBucket;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#bucket = new TokenBucket(BURST, (BURST / PER_SECOND) * 1000, () => clock.now());
  }

  /** Null if the delivery is not listed; otherwise how many of the source were not listed before it. `isWanted`: an operator waits for it. */
  take(source: string, isWanted = false): number | null {
    const now = this.#clock.now();
    const count = this.#sources.get(source) ?? { listedAt: Number.NEGATIVE_INFINITY, unlisted: 0 };
    this.#sources.set(source, count);
    if (this.#bucket.take() > 0 && !isWanted && Math.abs(now - count.listedAt) < QUIET_MS) {
      count.unlisted += 1;
      return null;
    }
    const { unlisted } = count;
    count.listedAt = now;
    count.unlisted = 0;
    return unlisted;
  }

  /** How many of the source are counted since the last listed one. */
  unlisted(source: string): number {
    return this.#sources.get(source)?.unlisted ?? 0;
  }
}
