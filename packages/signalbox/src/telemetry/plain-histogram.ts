/** A histogram as plain numbers, for values that are observed on every request; Prometheus reads it when it asks. */
import type { MetricValue } from "prom-client";

interface NamedValue extends MetricValue<string> {
  readonly metricName: string;
}

export class PlainHistogram {
  readonly #bounds: readonly number[];
  readonly #buckets: Float64Array;
  #sum = 0;
  #count = 0;

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
  read(name: string, labels: Record<string, string>): NamedValue[] {
    let cumulative = 0;
    const buckets = this.#bounds.map((bound, i) => {
      cumulative += this.#buckets[i] ?? 0;
      return { metricName: `${name}_bucket`, labels: { le: bound, ...labels }, value: cumulative };
    });
    return [
      ...buckets,
      { metricName: `${name}_bucket`, labels: { le: "+Inf", ...labels }, value: this.#count },
      { metricName: `${name}_sum`, labels, value: this.#sum },
      { metricName: `${name}_count`, labels, value: this.#count },
    ];
  }
}
