import type { Series } from "./series.ts";

interface ChartTableProps {
  readonly title: string;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly formatTime: (time: number) => string;
}

/** The chart's values as a collapsed table. Times at which every series is zero are omitted. */
export function ChartTable({ title, times, series, format, formatTime }: ChartTableProps) {
  const rows = times.flatMap((time, i) =>
    series.some(({ values }) => (values[i] ?? 0) !== 0) ? [{ time, i }] : [],
  );
  return (
    <details className="chart-table">
      <summary>Data</summary>
      {/* oxlint-disable-next-line jsx-a11y/no-noninteractive-tabindex -- a region that scrolls must be reachable by keyboard */}
      <div className="table-scroll" tabIndex={0} role="region" aria-label={`${title} data`}>
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              {series.map(({ name }) => (
                <th key={name} scope="col" className="align-end">
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map(({ time, i }) => (
              <tr key={time}>
                <td>{formatTime(time)}</td>
                {series.map(({ name, values }) => {
                  const value = values[i];
                  return (
                    <td key={name} className="align-end">
                      {value == null ? "–" : format(value)}
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  );
}
