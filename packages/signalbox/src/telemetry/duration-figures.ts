/** A histogram's figures in plain numbers: one addition per bucket and observation, made cumulative only when Prometheus asks. */
import type { MetricValue } from "prom-client";

export type HistogramValue = MetricValue<string> & { metricName?: string };

export class DurationFigures {
  readonly #bounds: readonly number[];
  readonly #buckets: Float64Array;
  #sum = 0;
  #count = 0;

  /** `bounds` in seconds, ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = new Float64Array(bounds.length);
  }

  observe(seconds: number): void {
    this.#count += 1;
    this.#sum += seconds;
    for (let i = 0; i < this.#bounds.length; i++) {
      if (seconds <= (this.#bounds[i] ?? Infinity)) {
        this.#buckets[i] = (this.#buckets[i] ?? 0) + 1;
        return;
      }
    }
  }

  values(name: string, labels: Readonly<Record<string, string>>): HistogramValue[] {
    let cumulative = 0;
    const buckets = this.#bounds.map((bound, i) => {
      cumulative += this.#buckets[i] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: cumulative };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: "+Inf", ...labels }, value: this.#count },
      { metricName: `${name}_sum`, labels: { ...labels }, value: this.#sum },
      { metricName: `${name}_count`, labels: { ...labels }, value: this.#count },
    ];
  }
}
