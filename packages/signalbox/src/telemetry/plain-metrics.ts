/**
 * Metrics for what happens thousands of times a second: plain numbers in plain maps, handed to Prometheus when it asks. The library's own
 * labelled metrics hash their labels with every call.
 */
import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";
import { PlainHistogram } from "./plain-histogram.ts";

/** Counts by two labels of few values each. */
export class PairCounter {
  readonly #counts = new Map<string, Map<string, number>>();

  constructor(
    registry: Registry,
    description: { readonly name: string; readonly help: string; readonly labels: readonly [string, string] },
  ) {
    const { name, help, labels } = description;
    registry.registerMetric(metricReader(name, help, "counter", () => this.#read(labels)));
  }

  add(first: string, second: string): void {
    let bySecond = this.#counts.get(first);
    if (bySecond === undefined) {
      bySecond = new Map();
      this.#counts.set(first, bySecond);
    }
    bySecond.set(second, (bySecond.get(second) ?? 0) + 1);
  }

  #read([first, second]: readonly [string, string]): MetricValue<string>[] {
    return [...this.#counts].flatMap(([a, bySecond]) =>
      [...bySecond].map(([b, value]) => ({ value, labels: { [first]: a, [second]: b } })),
    );
  }
}

/** Durations by one label of few values. */
export class DurationsByLabel {
  readonly #bounds: readonly number[];
  readonly #figures = new Map<string, PlainHistogram>();

  constructor(
    registry: Registry,
    description: { readonly name: string; readonly help: string; readonly label: string },
    bounds: readonly number[],
  ) {
    this.#bounds = bounds;
    const { name, help, label } = description;
    registry.registerMetric(
      metricReader(name, help, "histogram", () =>
        [...this.#figures].flatMap(([value, figures]) => figures.values(name, { [label]: value })),
      ),
    );
  }

  observe(value: string, seconds: number): void {
    let figures = this.#figures.get(value);
    if (figures === undefined) {
      figures = new PlainHistogram(this.#bounds);
      this.#figures.set(value, figures);
    }
    figures.observe(seconds);
  }
}

/** Durations of one thing. */
export function createDurations(
  registry: Registry,
  name: string,
  help: string,
  bounds: readonly number[],
): PlainHistogram {
  const figures = new PlainHistogram(bounds);
  registry.registerMetric(metricReader(name, help, "histogram", () => figures.values(name, {})));
  return figures;
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
