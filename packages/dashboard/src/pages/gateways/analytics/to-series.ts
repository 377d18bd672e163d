/** Converts usage rows to the times and series of a chart: one series for each of the five groups with the most calls. */
import type { Series } from "../../../components/chart/series.ts";
import type { Usage } from "./usage.ts";

export interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: "hour" | "day";
}

const HOUR_MS = 3_600_000;
const MAX_SERIES = 5;

/** Every hour or day of the time span, including those without calls. */
export function timesOf({ from, to, step }: Span): number[] {
  const size = step === "hour" ? HOUR_MS : 24 * HOUR_MS;
  const times: number[] = [];
  for (let time = Math.floor(from / size) * size; time < to; time += size) times.push(time);
  return times;
}

/** Group names in descending order of calls. */
export function namesByCalls(rows: readonly Usage[], by: "provider" | "model"): string[] {
  const calls = new Map<string, number>();
  for (const row of rows) calls.set(nameOf(row, by), (calls.get(nameOf(row, by)) ?? 0) + row.calls);
  return [...calls].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** For values that can be added: the groups after the first five are combined into one series. */
export function sumSeries(
  rows: readonly Usage[],
  by: "provider" | "model",
  times: readonly number[],
  value: (row: Usage) => number,
): Series[] {
  const names = namesByCalls(rows, by);
  const shown = names.slice(0, MAX_SERIES);
  const columns = new Map<string, number[]>(shown.map((name) => [name, times.map(() => 0)]));
  if (names.length > MAX_SERIES)
    columns.set(
      "Other",
      times.map(() => 0),
    );
  const index = new Map(times.map((time, i) => [time, i]));
  for (const row of rows) {
    const i = index.get(timeOf(row));
    const column = columns.get(nameOf(row, by)) ?? columns.get("Other");
    if (i !== undefined && column !== undefined) column[i] = (column[i] ?? 0) + value(row);
  }
  return [...columns].map(([name, values]) => ({ name, values }));
}

/** For values that cannot be added, such as percentiles: the groups after the first five are omitted. */
export function pointSeries(
  rows: readonly Usage[],
  by: "provider" | "model",
  times: readonly number[],
  value: (row: Usage) => number | null,
): Series[] {
  const index = new Map(times.map((time, i) => [time, i]));
  return namesByCalls(rows, by)
    .slice(0, MAX_SERIES)
    .map((name) => {
      const values: (number | null)[] = times.map(() => null);
      for (const row of rows) {
        const i = index.get(timeOf(row));
        if (i !== undefined && nameOf(row, by) === name) values[i] = value(row);
      }
      return { name, values };
    });
}

function timeOf(row: Usage): number {
  return Date.parse(row.hour ?? row.day ?? "");
}

function nameOf(row: Usage, by: "provider" | "model"): string {
  const name = row[by] ?? "";
  return name === "" ? "unknown" : name;
}
