/** When the cluster was under a fault. A cluster without a fault refuses nothing. */

interface Interval {
  readonly from: number;
  to: number | null;
}

/**
 * After all nodes are ready again. Readiness tells that the heartbeat has its connection; the other connections to PostgreSQL and to other
 * nodes are opened again with delays of up to a second.
 */
const AFTERMATH_MS = 2500;

export class Disturbance {
  readonly #intervals: Interval[] = [];

  begin(): void {
    this.#intervals.push({ from: performance.now(), to: null });
  }

  /** All nodes are ready again. */
  end(): void {
    const last = this.#intervals.at(-1);
    if (last?.to === null) last.to = performance.now() + AFTERMATH_MS;
  }

  touches(from: number, to: number): boolean {
    return this.#intervals.some((interval) => interval.from <= to && (interval.to ?? Infinity) >= from);
  }
}
