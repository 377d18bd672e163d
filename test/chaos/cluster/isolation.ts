/**
 * How long a node could not reach PostgreSQL, or could not run. The oracle needs it for the bound of `cluster.maxStaleMs` only.
 *
 * An isolation begins with its fault. It ends when the node answers a question of after the fault that it is ready: if the isolation was longer
 * than a node is ready without a heartbeat, it must have sent one since.
 */
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
    if (this.#faults === 0 && last?.to === null && askedAt > this.#endedAt) last.to = performance.now();
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
