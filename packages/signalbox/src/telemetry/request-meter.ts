/**
 * Counts requests and their durations for every request the listener answers, and hands the figures to Prometheus when it asks.
 *
 * Plain numbers in plain maps instead of the library's own labelled counters: those hash their labels on every call, which cost
 * more than the rest of the dispatch together.
 */
import type { MetricValue, Registry } from "prom-client";
import { PlainHistogram, type HistogramValue } from "./plain-histogram.ts";
import { metricReader } from "./plain-metrics.ts";

class AreaFigures {
  /** Method → status → count. */
  readonly counts = new Map<string, Map<number, number>>();
  readonly durations: PlainHistogram;

  constructor(bounds: readonly number[]) {
    this.durations = new PlainHistogram(bounds);
  }
}

const DURATIONS = "signalbox_http_request_duration_seconds";

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
      metricReader(DURATIONS, "Time from a request's headers to the end of its answer.", "histogram", () =>
        this.#readDurations(),
      ),
    );
  }

  observe(area: string, method: string, status: number, seconds: number): void {
    let figures = this.#areas.get(area);
    if (figures === undefined) {
      figures = new AreaFigures(this.#bounds);
      this.#areas.set(area, figures);
    }
    let byStatus = figures.counts.get(method);
    if (byStatus === undefined) {
      byStatus = new Map();
      figures.counts.set(method, byStatus);
    }
    byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    figures.durations.observe(seconds);
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

  #readDurations(): HistogramValue[] {
    return [...this.#areas].flatMap(([area, figures]) => figures.durations.values(DURATIONS, { area }));
  }
}
