/** Converts usage rows to the series of a chart: one series for each of the groups with the most calls. */
import { OTHER } from "../../../components/chart/series-color.ts";
import type { Series } from "../../../components/chart/series.ts";
import type { Usage } from "./usage.ts";

/** More colors in one chart cannot be told apart. */
const MAX_SERIES = 5;

/** Group names in descending order of calls. */
export function namesByCalls(rows: readonly Usage[], by: "provider" | "model"): string[] {
  const calls = new Map<string, number>();
  for (const row of rows) calls.set(nameOf(row, by), (calls.get(nameOf(row, by)) ?? 0) + row.calls);
  return [...calls].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

/** For values that can be added: the groups after the first ones are combined into one series. */
export function sumSeries(
  rows: readonly Usage[],
  by: "provider" | "model",
  times: readonly number[],
  value: (row: Usage) => number,
): Series[] {
  const names = namesByCalls(rows, by);
  const shown = names.slice(0, MAX_SERIES);
  const columns = new Map<string, number[]>(shown.map((name) => [name, times.map(() => 0)]));
  if (names.length > MAX_SERIES) {
    columns.set(
      OTHER,
      times.map(() => 0),
    );
  }
  const index = new Map(times.map((time, i) => [time, i]));
  for (const row of rows) {
    const i = index.get(timeOf(row));
    const column = columns.get(nameOf(row, by)) ?? columns.get(OTHER);
    if (i !== undefined && column !== undefined) column[i] = (column[i] ?? 0) + value(row);
  }
  return [...columns].map(([name, values]) => ({ name, values }));
}

/** For values that cannot be added, such as percentiles: the groups after the first ones are omitted. */
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

/** The sum of all groups at each time; null at times without calls. */
export function totalValues(
  rows: readonly Usage[],
  times: readonly number[],
  value: (row: Usage) => number,
): (number | null)[] {
  const index = new Map(times.map((time, i) => [time, i]));
  const values: (number | null)[] = times.map(() => null);
  for (const row of rows) {
    const i = index.get(timeOf(row));
    if (i !== undefined) values[i] = (values[i] ?? 0) + value(row);
  }
  return values;
}

/** The minute, hour or day of a row. */
export function timeOf(row: Usage): number {
  return Date.parse(row.minute ?? row.hour ?? row.day ?? "");
}

function nameOf(row: Usage, by: "provider" | "model"): string {
  const name = row[by] ?? "";
  return name === "" ? "unknown" : name;
}
