import { memo } from "react";
import type { ChartFrame } from "./chart-frame.ts";
import { runsOf } from "./runs.ts";
import { colorClass } from "./series-color.ts";
import type { ChartKind, Series } from "./series.ts";

interface ChartMarksProps {
  readonly kind: ChartKind;
  readonly series: readonly Series[];
  readonly frame: ChartFrame;
}

/** Drawn once for its data and its width, not for every move of the pointer. */
export const ChartMarks = memo(function ChartMarks({ kind, ...rest }: ChartMarksProps) {
  return kind === "bars" ? <Bars {...rest} /> : <Lines {...rest} />;
});

type MarksProps = Omit<ChartMarksProps, "kind">;

function Bars({ series, frame: { slot, x, y } }: MarksProps) {
  const gap = Math.min(3, slot * 0.2);
  const length = series[0]?.values.length ?? 0;
  return Array.from({ length }, (_, i) => {
    let base = 0;
    return (
      // oxlint-disable-next-line react/no-array-index-key -- the index identifies the time
      <g key={i}>
        {series.map((one) => {
          const value = one.values[i] ?? 0;
          if (value === 0) return null;
          const from = y(base);
          base += value;
          return (
            <rect
              key={one.name}
              data-series={one.name}
              x={x(i) + gap / 2}
              y={Math.min(y(base), from - 1)}
              width={Math.max(1, slot - gap)}
              height={Math.max(1, from - y(base))}
              className={colorClass(one)}
            />
          );
        })}
      </g>
    );
  });
}

/** Lines end where a time has no value; a value without neighbours is a point. */
function Lines({ series, frame: { slot, x, y } }: MarksProps) {
  const hasDots = slot >= 12;
  return series.map((one) => (
    <g key={one.name} className={colorClass(one)}>
      {runsOf(one.values).map((run) => {
        const points = run.map(({ index, value }) => [x(index) + slot / 2, y(value)] as const);
        return (
          <g key={run[0]?.index}>
            {run.length > 1 && (
              <polyline points={points.map(([px, py]) => `${px},${py}`).join(" ")} className="chart-line" />
            )}
            {(hasDots || run.length === 1) &&
              points.map(([px, py]) => <circle key={px} cx={px} cy={py} r={run.length === 1 ? 3.5 : 2.5} />)}
          </g>
        );
      })}
    </g>
  ));
}
