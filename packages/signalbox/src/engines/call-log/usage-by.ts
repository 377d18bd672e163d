/**
 * Usage by whom: sums over calls by token or by values of metadata. One dimension is answered from totals (`totals-query.ts`), several from the
 * rows of calls.
 *
 * Invariants:
 * 1. The cost of a query is bounded: at most `MAX_ROWS_READ` rows are read, the newest first. If there are more, `countedFrom` says how far it came.
 * 2. The number of values is bounded: beyond `maxValues`, the values with the fewest calls are added up as `other`. All sums together are exact.
 *    The figures of a value are exact unless `isBounded`.
 */
import { addUsageFigures, type UsageFigures, type UsageQuery } from "./usage.ts";

/** What distinguishes the callers: the token, or the value of a metadata key. */
export type UsageDimension = { readonly kind: "token" } | { readonly kind: "metadata"; readonly key: string };

export interface UsageByQuery extends UsageQuery {
  /** None: all calls together. */
  readonly dimensions: readonly UsageDimension[];
  /** Only calls with these values; null selects calls without one. */
  readonly only: readonly { readonly dimension: UsageDimension; readonly value: string | null }[];
  readonly maxValues: number;
}

/** The value of each dimension; null for calls without one. */
export type UsageLabels = readonly (string | null)[];

export interface UsageByFigures extends UsageFigures {
  /** Null: the calls of all values that are not listed. */
  readonly labels: UsageLabels | null;
}

export interface UsageBy {
  readonly figures: readonly UsageByFigures[];
  /** Values that are added up in `other`; at least so many if `isBounded`. */
  readonly otherValues: number;
  /** `other` may have calls of the listed values: there were more values than one read or the totals of a day keep apart. */
  readonly isBounded: boolean;
  /** Time of the oldest call that was read, if the period has more rows than one query reads; otherwise null. */
  readonly countedFrom: number | null;
}

/** One part of a query: other reads run between two parts. */
export interface UsageByPart extends UsageBy {
  readonly rows: number;
  /** Continues the query; null at the end. */
  readonly next: string | null;
}

/** Rows that one query reads. */
export const MAX_ROWS_READ = 5_000_000;
/** Figures of one result. More are not shown, because a reader could not use them. */
export const MAX_FIGURES = 20_000;
/** Values that are kept while rows are read, and figures of all of them: a value has one for each hour, model and so on. About 100 MB. */
export const MAX_KEPT_VALUES = 20_000;
const MAX_KEPT_FIGURES = 100_000;

interface Value {
  readonly labels: UsageLabels;
  calls: number;
  readonly groups: Map<string, UsageFigures>;
}

/** Adds up the groups of several reads. */
export class UsageByTotals {
  readonly #maxValues: number;
  #values = new Map<string, Value>();
  readonly #other = new Map<string, UsageFigures>();
  #otherValues = 0;
  #isBounded = false;
  /** Figures of `#values`. */
  #figures = 0;

  constructor(maxValues: number) {
    this.#maxValues = maxValues;
  }

  add(labels: UsageLabels, one: UsageFigures): void {
    const key = JSON.stringify(labels);
    let value = this.#values.get(key);
    if (value === undefined) {
      value = { labels, calls: 0, groups: new Map() };
      this.#values.set(key, value);
    }
    value.calls += one.calls;
    this.#figures -= value.groups.size;
    addTo(value.groups, one);
    this.#figures += value.groups.size;
    const { size } = this.#values;
    if (size > MAX_KEPT_VALUES || (this.#figures > MAX_KEPT_FIGURES && size > this.#maxValues)) {
      this.#isBounded = true;
      this.#keep(Math.max(this.#maxValues, Math.ceil(size / 2)));
    }
  }

  /** Adds the groups of one part. */
  addPart({ figures, otherValues, isBounded }: UsageBy): void {
    this.#otherValues += otherValues;
    this.#isBounded ||= isBounded;
    for (const { labels, ...one } of figures) {
      if (labels === null) addTo(this.#other, one);
      else this.add(labels, one);
    }
  }

  /** The values with the most calls first, then `other`; each in the order of time. */
  finish(countedFrom: number | null): UsageBy {
    this.#keep(this.#maxValues);
    const values = [...this.#values.values()].sort((a, b) => b.calls - a.calls);
    return {
      figures: [
        ...values.flatMap(({ labels, groups }) => [...groups.values()].map((one) => ({ ...one, labels }))),
        ...[...this.#other.values()].map((one) => ({ ...one, labels: null })),
      ].sort((a, b) => (a.time ?? 0) - (b.time ?? 0)),
      otherValues: this.#otherValues,
      isBounded: this.#isBounded,
      countedFrom,
    };
  }

  #keep(count: number): void {
    if (this.#values.size <= count) return;
    const sorted = [...this.#values].sort(([, a], [, b]) => b.calls - a.calls);
    this.#values = new Map(sorted.slice(0, count));
    for (const [, { groups }] of sorted.slice(count)) {
      this.#otherValues += 1;
      this.#figures -= groups.size;
      for (const one of groups.values()) addTo(this.#other, one);
    }
  }
}

function addTo(groups: Map<string, UsageFigures>, one: UsageFigures): void {
  const key = JSON.stringify([one.time, one.gatewayId, one.provider, one.model]);
  const known = groups.get(key);
  groups.set(key, known === undefined ? one : addUsageFigures(known, one));
}
