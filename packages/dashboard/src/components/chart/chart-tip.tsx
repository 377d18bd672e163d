import { colorClass } from "./series-color.ts";
import type { Series } from "./series.ts";

interface ChartTipProps {
  readonly time: string;
  readonly index: number;
  readonly series: readonly Series[];
  readonly format: (value: number) => string;
  readonly isLeft: boolean;
}

/** The values of one time, largest first. */
export function ChartTip({ time, index, series, format, isLeft }: ChartTipProps) {
  const values = valuesAt(series, index);
  return (
    <div className={`chart-tip ${isLeft ? "chart-tip-left" : "chart-tip-right"}`} aria-hidden="true">
      <strong>{time}</strong>
      {values.length === 0 && <span className="muted">No data</span>}
      {values.map(({ one, value }) => (
        <span key={one.name} className="chart-tip-row">
          <span>
            <span className={`swatch ${colorClass(one)}`} />
            {one.name}
          </span>
          <span className="chart-tip-value">{format(value)}</span>
        </span>
      ))}
    </div>
  );
}

/** The same as one line, for screen readers. */
export function tipText(
  time: string,
  index: number,
  series: readonly Series[],
  format: (value: number) => string,
): string {
  const values = valuesAt(series, index);
  if (values.length === 0) return `${time}: no data`;
  return `${time}: ${values.map(({ one, value }) => `${one.name} ${format(value)}`).join(", ")}`;
}

function valuesAt(series: readonly Series[], index: number): { one: Series; value: number }[] {
  return series
    .flatMap((one) => {
      const value = one.values[index];
      return value == null || value === 0 ? [] : [{ one, value }];
    })
    .sort((a, b) => b.value - a.value);
}
