/**
 * Histograms by sets of attributes, with the temporality `cumulative`. At most `MAX_SETS` sets are kept for each instrument; the values of further
 * ones are counted together under `otel.metric.overflow`, as the specification of the SDK demands.
 */
import type { Attributes } from "./span.ts";
import { attributesText, toNanos } from "./metric-text.ts";

export interface Instrument {
  readonly name: string;
  readonly unit: string;
  readonly description: string;
  /** Ascending. */
  readonly bounds: readonly number[];
}

export interface Series {
  readonly bounds: readonly number[];
  readonly attributes: string;
  readonly counts: number[];
  sum: number;
  count: number;
  min: number;
  max: number;
}

const MAX_SETS = 2000;
const CUMULATIVE = 2;
const OVERFLOW = "overflow";

export class Histograms {
  readonly #startMs: number;
  readonly #instruments = new Map<Instrument, Map<string, Series>>();

  constructor(startMs: number) {
    this.#startMs = startMs;
  }

  /** What values with these attributes are added to. `key` identifies the attributes, which are read when the key is new. */
  series(instrument: Instrument, key: string, attributes: () => Attributes): Series {
    let sets = this.#instruments.get(instrument);
    if (sets === undefined) this.#instruments.set(instrument, (sets = new Map()));
    let found = sets.get(key);
    if (found === undefined) {
      const isFull = sets.size >= MAX_SETS;
      found = isFull ? sets.get(OVERFLOW) : undefined;
      if (found === undefined) {
        found = {
          attributes: attributesText(isFull ? ["otel.metric.overflow", true] : attributes()),
          counts: Array.from({ length: instrument.bounds.length + 1 }, () => 0),
          sum: 0,
          count: 0,
          min: Infinity,
          max: -Infinity,
          bounds: instrument.bounds,
        };
        sets.set(isFull ? OVERFLOW : key, found);
      }
    }
    return found;
  }

  record(series: Series, value: number): void {
    const { bounds, counts } = series;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at += 1;
    counts[at] = (counts[at] ?? 0) + 1;
    series.sum += value;
    series.count += 1;
    if (value < series.min) series.min = value;
    if (value > series.max) series.max = value;
  }

  get isEmpty(): boolean {
    return this.#instruments.size === 0;
  }

  /** The elements of `metrics` in OTLP/JSON. */
  text(nowMs: number): string {
    const times = `"startTimeUnixNano":"${toNanos(this.#startMs)}","timeUnixNano":"${toNanos(nowMs)}"`;
    return [...this.#instruments]
      .map(([{ name, unit, description, bounds }, sets]) => {
        const points = [...sets.values()]
          .filter(({ count }) => count > 0)
          .map(
            ({ attributes, counts, sum, count, min, max }) =>
              `{${times},"count":"${count}","sum":${sum},"min":${min},"max":${max},"bucketCounts":[${counts.map((one) => `"${one}"`).join(",")}],"explicitBounds":[${bounds.join(",")}],"attributes":[${attributes}]}`,
          );
        return `{"name":"${name}","unit":"${unit}","description":"${description}","histogram":{"aggregationTemporality":${CUMULATIVE},"dataPoints":[${points.join(",")}]}}`;
      })
      .join(",");
  }
}
