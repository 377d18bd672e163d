/**
 * Counts requests and their durations for every request the listener answers, and hands the figures to Prometheus when it asks.
 *
 * Plain numbers in plain maps instead of the library's own labelled counters: those hash their labels on every call, which cost
 * more than the rest of the dispatch together.
 */
import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";

class AreaFigures {
  /** Status and method → count. */
  readonly counts = new Map<string, Map<number, number>>();
  readonly buckets: Float64Array;
  sum = 0;
  count = 0;

  constructor(bucketCount: number) {
    this.buckets = new Float64Array(bucketCount);
  }
}

export class RequestMeter {
  readonly #bounds: readonly number[];
  readonly #areas = new Map<string, AreaFigures>();

  constructor(registry: Registry, bounds: readonly number[]) {
    this.#bounds = bounds;
    registry.registerMetric(
      metricReader(
        "signalbox_http_requests_total",
        "Requests answered, by area, method and status.",
        "counter",
        () => this.#readCounts(),
      ),
    );
    registry.registerMetric(
      metricReader(
        "signalbox_http_request_duration_seconds",
        "Time from a request's headers to the end of its answer.",
        "histogram",
        () => this.#readDurations(),
      ),
    );
  }

  observe(area: string, method: string, status: number, seconds: number): void {
    let figures = this.#areas.get(area);
    if (figures === undefined) {
      figures = new AreaFigures(this.#bounds.length);
      this.#areas.set(area, figures);
    }
    let byStatus = figures.counts.get(method);
    if (byStatus === undefined) {
      byStatus = new Map();
      figures.counts.set(method, byStatus);
    }
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    figures.count += 1;
    figures.sum += seconds;
    for (let i = 0; i < this.#bounds.length; i++) {
      if (seconds <= (this.#bounds[i] ?? Infinity)) {
        figures.buckets[i] = (figures.buckets[i] ?? 0) + 1;
        return;
      }
    }
  }

  #readCounts(): MetricValue<string>[] {
    const values: MetricValue<string>[] = [];
    for (const [area, figures] of this.#areas) {
      for (const [method, byStatus] of figures.counts) {
        for (const [status, value] of byStatus) values.push({ value, labels: { area, method, status } });
      }
    }
    return values;
  }

  #readDurations(): (MetricValue<string> & { metricName?: string })[] {
    const name = "signalbox_http_request_duration_seconds";
    return [...this.#areas].flatMap(([area, figures]) => {
      let cumulative = 0;
      const buckets = this.#bounds.map((bound, i) => {
        cumulative += figures.buckets[i] ?? 0;
        return { metricName: `${name}_bucket`, labels: { le: bound, area }, value: cumulative };
      });
      return [
        ...buckets,
        { metricName: `${name}_bucket`, labels: { le: "+Inf", area }, value: figures.count },
        { metricName: `${name}_sum`, labels: { area }, value: figures.sum },
        { metricName: `${name}_count`, labels: { area }, value: figures.count },
      ];
    });
  }
}

/** The least a registry needs of a metric: its description and its values when asked. */
export function metricReader(
  name: string,
  help: string,
  type: "counter" | "gauge" | "histogram",
  values: () => MetricValue<string>[],
): Metric {
  const metric = {
    name,
    get: async () =>
      ({ name, help, type, values: values(), aggregator: "sum" }) as unknown as MetricObjectWithValues<
        MetricValue<string>
      >,
    reset: () => undefined,
  };
  return metric as unknown as Metric;
}
