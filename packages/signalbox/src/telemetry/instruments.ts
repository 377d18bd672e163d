/**
 * A labelled counter and a labelled histogram for Prometheus. Both are updated for every request, so they count in nested maps and build the
 * series when Prometheus reads them. The labelled metrics of prom-client hash the labels with every update, which costs more than the dispatch of
 * a request.
 */
import type { Metric, MetricObjectWithValues, MetricValue, Registry } from "prom-client";

export interface Description {
  readonly name: string;
  readonly help: string;
  /** Names of the labels; every value must come from a small set. Default: no label. */
  readonly labels?: readonly string[];
}

type Label = string | number;
type Counts = Map<Label, Counts | number>;

/** Counts per combination of up to three labels. */
export class LabelledCounter {
  readonly #counts: Counts = new Map();

  constructor(registry: Registry, { name, help, labels = [] }: Description) {
    // A metric without labels has one series from the start, as Prometheus expects.
    if (labels.length === 0) this.#counts.set("", 0);
    registerMetric(registry, "counter", { name, help, labels }, () => seriesOf(this.#counts, labels, {}));
  }

  add(amount: number, first: Label = "", second?: Label, third?: Label): void {
    let counts = this.#counts;
    let last = first;
    if (second !== undefined) {
      counts = mapAt(counts, first);
      last = second;
    }
    if (third !== undefined) {
      counts = mapAt(counts, last);
      last = third;
    }
    counts.set(last, ((counts.get(last) as number | undefined) ?? 0) + amount);
  }
}

function mapAt(counts: Counts, label: Label): Counts {
  let below = counts.get(label) as Counts | undefined;
  if (below === undefined) {
    below = new Map();
    counts.set(label, below);
  }
  return below;
}

function seriesOf(
  counts: Counts,
  [name, ...rest]: readonly string[],
  labels: Readonly<Record<string, Label>>,
): MetricValue<string>[] {
  return [...counts].flatMap(([value, below]) => {
    const all = name === undefined ? labels : { ...labels, [name]: value };
    return typeof below === "number" ? [{ value: below, labels: all }] : seriesOf(below, rest, all);
  });
}

/** The distribution of a value, with at most one label. */
export class LabelledHistogram {
  readonly #bounds: readonly number[];
  readonly #distributions = new Map<string, Distribution>();

  /** `bounds` ascending. */
  constructor(registry: Registry, { name, help, labels = [] }: Description, bounds: readonly number[]) {
    this.#bounds = bounds;
    const [label] = labels;
    if (label === undefined) this.#distributions.set("", new Distribution(bounds.length));
    registerMetric(registry, "histogram", { name, help, labels }, () =>
      [...this.#distributions].flatMap(([value, distribution]) =>
        distribution.series(name, label === undefined ? {} : { [label]: value }, bounds),
      ),
    );
  }

  observe(value: number, label = ""): void {
    let distribution = this.#distributions.get(label);
    if (distribution === undefined) {
      distribution = new Distribution(this.#bounds.length);
      this.#distributions.set(label, distribution);
    }
    distribution.observe(value, this.#bounds);
  }
}

class Distribution {
  readonly #buckets: Float64Array;
  #sum = 0;
  #count = 0;

  constructor(bucketCount: number) {
    this.#buckets = new Float64Array(bucketCount);
  }

  observe(value: number, bounds: readonly number[]): void {
    this.#sum += value;
    this.#count += 1;
    for (let i = 0; i < bounds.length; i++) {
      if (value <= (bounds[i] ?? Infinity)) {
        this.#buckets[i] = (this.#buckets[i] ?? 0) + 1;
        return;
      }
    }
  }

  /** Cumulative buckets, sum and count. */
  series(
    name: string,
    labels: Readonly<Record<string, string>>,
    bounds: readonly number[],
  ): (MetricValue<string> & { metricName: string })[] {
    let cumulative = 0;
    const buckets = bounds.map((bound, i) => {
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

/** By metric, for the documentation: a registry shows the labels of values that exist. */
export const labelNames = new Map<string, readonly string[]>();

/** Registers a gauge whose value is read when Prometheus reads the metrics. */
export function registerGauge(registry: Registry, description: Description, read: () => number): void {
  registerMetric(registry, "gauge", description, () => [{ value: read(), labels: {} }]);
}

/** Registers a metric whose values are computed when Prometheus reads them. */
export function registerMetric(
  registry: Registry,
  type: "counter" | "gauge" | "histogram",
  { name, help, labels = [] }: Description,
  values: () => MetricValue<string>[],
): void {
  labelNames.set(name, labels);
  const metric = {
    name,
    get: async () =>
      ({ name, help, type, values: values(), aggregator: "sum" }) as unknown as MetricObjectWithValues<
        MetricValue<string>
      >,
    reset: () => undefined,
  };
  registry.registerMetric(metric as unknown as Metric);
}
