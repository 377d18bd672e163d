/** Converts usage rows to the series of a chart: one series for each of the groups with the most calls, one value for each bucket. */
import { OTHER } from "../../../components/chart/series-color.ts";
import type { Series } from "../../../components/chart/series.ts";
import { bucketAt, type TimeRange, timesOf } from "../../../components/time-range/time-range.ts";
import { totalOf, type UsageTotal } from "./usage-total.ts";
import type { Usage } from "./usage.ts";

export type Breakdown = "provider" | "model";

/** More colors in one chart cannot be told apart. */
const MAX_SERIES = 5;

type Buckets = Pick<TimeRange, "from" | "to" | "bucketMs">;

/** The totals of one group in each bucket of the range; null where it has no calls. */
export interface GroupTotals {
  readonly name: string;
  readonly totals: readonly (UsageTotal | null)[];
}

/** The groups in descending order of calls. Those after the first ones are together the group `Other`. */
export function groupTotals(rows: readonly Usage[], by: Breakdown, range: Buckets): GroupTotals[] {
  const names = namesByCalls(rows, by);
  const own = new Set(names.slice(0, MAX_SERIES));
  const ofName = Map.groupBy(rows, (row) => (own.has(nameOf(row, by)) ? nameOf(row, by) : OTHER));
  return [...own, ...(names.length > own.size ? [OTHER] : [])].map((name) => ({
    name,
    totals: bucketTotals(ofName.get(name) ?? [], range),
  }));
}

/** The totals of all rows in each bucket of the range; null where there are no calls. */
export function bucketTotals(rows: readonly Usage[], range: Buckets): (UsageTotal | null)[] {
  const ofBucket = Map.groupBy(rows, (row) => bucketAt(timeOf(row), range.bucketMs));
  return timesOf(range).map((time) => {
    const own = ofBucket.get(time);
    return own === undefined ? null : totalOf(own);
  });
}

/** For values that can be added: nothing is zero. */
export function sumSeries(groups: readonly GroupTotals[], value: (total: UsageTotal) => number): Series[] {
  return groups.map(({ name, totals }) => ({
    name,
    values: totals.map((total) => (total === null ? 0 : value(total))),
  }));
}

/** For values that cannot be added, such as percentiles: the group of the others has none that is of use. */
export function pointSeries(
  groups: readonly GroupTotals[],
  value: (total: UsageTotal) => number | null,
): Series[] {
  return groups
    .filter(({ name }) => name !== OTHER)
    .map(({ name, totals }) => ({
      name,
      values: totals.map((total) => (total === null ? null : value(total))),
    }));
}

/** Group names in descending order of calls. */
function namesByCalls(rows: readonly Usage[], by: Breakdown): string[] {
  const calls = new Map<string, number>();
  for (const row of rows) calls.set(nameOf(row, by), (calls.get(nameOf(row, by)) ?? 0) + row.calls);
  return [...calls].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** The minute, hour or day of a row. */
function timeOf(row: Usage): number {
  return Date.parse(row.minute ?? row.hour ?? row.day ?? "");
}

function nameOf(row: Usage, by: Breakdown): string {
  const name = row[by] ?? "";
  return name === "" ? "unknown" : name;
}
