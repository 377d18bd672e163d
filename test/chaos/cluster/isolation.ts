/**
 * When a node could not reach PostgreSQL, or could not run. The oracle allows a node less while it is connected than while it is isolated.
 *
 * An isolation begins with its fault. It ends when the node reports that it is ready, and enough time has passed since the end of the fault: a
 * node is ready while its last heartbeat is young, so it must have sent one since.
 */

/** A node is ready for this time after its last heartbeat, and a little more. */
const READY_MS = 2200;

interface Interval {
  readonly from: number;
  to: number | null;
}

export class Isolation {
  readonly #intervals: Interval[] = [];
  #faults = 0;
  #endedAt = 0;

  begin(): void {
    this.#faults += 1;
    if (this.#intervals.at(-1)?.to !== null) this.#intervals.push({ from: performance.now(), to: null });
  }

  /** The fault is over; the node may need time until it is connected again. */
  end(): void {
    this.#faults -= 1;
    this.#endedAt = performance.now();
  }

  reportReady(askedAt: number): void {
    const last = this.#intervals.at(-1);
    if (this.#faults === 0 && last?.to === null && askedAt > this.#endedAt + READY_MS)
      last.to = performance.now();
  }

  /** How long the longest isolation had lasted that touches the time from `from` to `to`, at `to`; 0 if none does. */
  longestWithin(from: number, to: number): number {
    const lasted = this.#intervals
      .filter((interval) => interval.from <= to && (interval.to ?? Infinity) >= from)
      .map((interval) => Math.min(interval.to ?? Infinity, to) - interval.from);
    return Math.max(0, ...lasted);
  }

  /** Begin of the isolation that includes the time or ended shortly before it; null if none does. */
  startBefore(at: number, toleranceMs: number): number | null {
    const found = this.#intervals.findLast(
      (interval) => interval.from <= at && (interval.to ?? Infinity) >= at - toleranceMs,
    );
    return found?.from ?? null;
  }
}
