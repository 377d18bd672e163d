/**
 * What a node answered when it was asked whether it is ready. A node that is ready has a lease, so it has every change that was answered
 * before the question.
 */
interface Probe {
  readonly askedAt: number;
  readonly answeredAt: number;
  readonly isReady: boolean;
}

/** Probes of the last minutes; no request takes longer. */
const MAX_PROBES = 4000;

export class ReadinessRecord {
  readonly #probes: Probe[] = [];

  report(askedAt: number, isReady: boolean): void {
    this.#probes.push({ askedAt, answeredAt: performance.now(), isReady });
    if (this.#probes.length > 2 * MAX_PROBES) this.#probes.splice(0, MAX_PROBES);
  }

  /** Whether the node was asked after `from`, and had answered that it is ready by `to`. */
  wasReadyBetween(from: number, to: number): boolean {
    return this.#probes.some((probe) => probe.isReady && probe.askedAt >= from && probe.answeredAt <= to);
  }

  /** When the last question before `at` was asked that the node answered with "ready"; -Infinity if there is none. */
  lastReadyBefore(at: number): number {
    return this.#probes.findLast((probe) => probe.isReady && probe.answeredAt <= at)?.askedAt ?? -Infinity;
  }

  /** The longest time that an answer took, of questions that touch the time. Tells how busy the machine is. */
  slowestWithin(from: number, to: number): number {
    const touching = this.#probes.filter((probe) => probe.askedAt <= to && probe.answeredAt >= from);
    return Math.max(0, ...touching.map(({ askedAt, answeredAt }) => answeredAt - askedAt));
  }

  /** Whether the node was not ready, or did not answer, at some probe that touches the time. */
  wasUnreadyWithin(from: number, to: number): boolean {
    return this.#probes.some((probe) => !probe.isReady && probe.askedAt <= to && probe.answeredAt >= from);
  }
}
