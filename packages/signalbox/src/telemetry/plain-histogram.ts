/** A histogram as plain numbers, for values that are observed on every request; Prometheus reads it when it asks. */
import type { MetricValue } from "prom-client";

export type HistogramValue = MetricValue<string> & { metricName?: string };

export class PlainHistogram {
  readonly #bounds: readonly number[];
  readonly #buckets: Float64Array;
  #sum = 0;
  #count = 0;

  /** `bounds` ascending. */
  constructor(bounds: readonly number[]) {
    this.#bounds = bounds;
    this.#buckets = new Float64Array(bounds.length);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#count += 1;
    for (let i = 0; i < this.#bounds.length; i++) {
      if (value <= (this.#bounds[i] ?? Infinity)) {
        this.#buckets[i] = (this.#buckets[i] ?? 0) + 1;
        return;
      }
    }
  }

  /** The series of one label set, cumulative as Prometheus wants them. */
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
