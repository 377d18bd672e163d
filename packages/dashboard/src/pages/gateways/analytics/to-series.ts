/** Usage rows → a chart's times and series: the largest five by calls, the rest as one where they add up. */
import type { Series } from "../../../components/chart/series.ts";
import type { Usage } from "./usage.ts";

export interface Span {
  readonly from: number;
  readonly to: number;
  readonly step: "hour" | "day";
}

const HOUR_MS = 3_600_000;
const MAX_SERIES = 5;

/** Every hour or day of the span, so that quiet times are seen as such. */
export function timesOf({ from, to, step }: Span): number[] {
  const size = step === "hour" ? HOUR_MS : 24 * HOUR_MS;
  const times: number[] = [];
  for (let time = Math.floor(from / size) * size; time < to; time += size) times.push(time);
  return times;
}

/** Names in order of their calls. */
export function namesByCalls(rows: readonly Usage[], by: "provider" | "model"): string[] {
  const calls = new Map<string, number>();
  for (const row of rows) calls.set(nameOf(row, by), (calls.get(nameOf(row, by)) ?? 0) + row.calls);
  return [...calls].sort((a, b) => b[1] - a[1]).map(([name]) => name);
}

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
      "other",
      times.map(() => 0),
    );
  const index = new Map(times.map((time, i) => [time, i]));
  for (const row of rows) {
    const i = index.get(timeOf(row));
    const column = columns.get(nameOf(row, by)) ?? columns.get("other");
    if (i !== undefined && column !== undefined) column[i] = (column[i] ?? 0) + value(row);
  }
  return [...columns].map(([name, values]) => ({ name, values }));
}

/** For figures that do not add up: only the largest five are shown. */
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
