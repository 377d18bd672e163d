/**
 * How long targets took until their answer began, as a moving average, for the strategy `least-latency`. Only calls with several steps
 * report: a plain call has nothing to choose.
 */
import type { Step } from "../step/step.ts";
import type { Gateway } from "../settings/gateway.ts";

/** The weight of the newest call: about ten calls dominate the average. */
const NEWEST_SHARE = 0.2;
const MAX_TARGETS = 10_000;

export class TargetLatencies {
  readonly #averages = new Map<string, number>();

  /** `sentAt` is `performance.now()` when the attempt was sent. */
  add(gateway: Gateway, step: Step, sentAt: number): void {
    const key = keyOf(gateway, step);
    const ms = performance.now() - sentAt;
    const before = this.#averages.get(key);
    if (before === undefined && this.#averages.size >= MAX_TARGETS) {
      const [oldest] = this.#averages.keys();
      if (oldest !== undefined) this.#averages.delete(oldest);
    }
    this.#averages.set(key, before === undefined ? ms : before + (ms - before) * NEWEST_SHARE);
  }

  /** Milliseconds; null for a target that has not answered yet. */
  find(gateway: Gateway, step: Step): number | null {
    return this.#averages.get(keyOf(gateway, step)) ?? null;
  }
}

function keyOf({ accountId }: Gateway, { provider, model }: Step): string {
  return `${accountId}/${provider.slug}/${model}`;
}
