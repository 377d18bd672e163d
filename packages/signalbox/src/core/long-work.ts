/**
 * Work that takes the event loop for a part of a second in one piece, such as parsing and translating a body of megabytes.
 *
 * Invariants:
 * 1. The pieces begin one after the other, those of different holders in turns.
 * 2. After a piece the event loop is free of them for as long as the piece took, unless it was short: together they take about half of it at most,
 *    however many wait.
 */
import { setImmediate as nextLoop, setTimeout as sleep } from "node:timers/promises";
import { FairQueue } from "./fair-queue.ts";

/** A pause is not shorter than a millisecond, and nobody notices such a piece. */
const SHORT_MS = 2;
/** Longer than any piece: a process that was stopped in the middle of one does not wait as long again. */
const MAX_PAUSE_MS = 500;

export class LongWork {
  readonly #turns = new FairQueue(1, Number.POSITIVE_INFINITY);
  readonly #now: () => number;
  readonly #pause: (ms: number) => Promise<unknown>;

  constructor(now = () => performance.now(), pause: (ms: number) => Promise<unknown> = sleep) {
    this.#now = now;
    this.#pause = pause;
  }

  /** Calls back when the piece may begin; at once if none has begun lately. It is what runs in the callback and in its microtasks. */
  begin(holder: string, piece: () => void): void {
    void this.#turns.run(holder, async () => {
      const startedAt = this.#now();
      piece();
      await nextLoop();
      const tookMs = this.#now() - startedAt;
      if (tookMs > SHORT_MS) await this.#pause(Math.min(tookMs, MAX_PAUSE_MS));
    });
  }
}
