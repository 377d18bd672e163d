import type { ChartKind, Series } from "./series.ts";

interface ChartMarksProps {
  readonly kind: ChartKind;
  readonly series: readonly Series[];
  /** Width of one time step, in pixels. */
  readonly slot: number;
  readonly x: (index: number) => number;
  readonly y: (value: number) => number;
}

export function ChartMarks({ kind, ...rest }: ChartMarksProps) {
  return kind === "bars" ? <Bars {...rest} /> : <Lines {...rest} />;
}

type MarksProps = Omit<ChartMarksProps, "kind">;

function Bars({ series, slot, x, y }: MarksProps) {
  const gap = Math.min(3, slot * 0.2);
  const length = series[0]?.values.length ?? 0;
  return Array.from({ length }, (_, i) => {
    let base = 0;
    return (
      // oxlint-disable-next-line react/no-array-index-key -- the index identifies the time
      <g key={i}>
        {series.map(({ name, values }, n) => {
          const value = values[i] ?? 0;
          if (value === 0) return null;
          const from = y(base);
          base += value;
          return (
            <rect
              key={name}
              x={x(i) + gap / 2}
              y={y(base)}
              width={Math.max(1, slot - gap)}
              height={Math.max(0.5, from - y(base))}
              className={`series-${n + 1}`}
            />
          );
        })}
      </g>
    );
  });
}

function Lines({ series, slot, x, y }: MarksProps) {
  return series.map(({ name, values }, n) => {
    const points = values.flatMap((value, i) =>
      value === null ? [] : [[x(i) + slot / 2, y(value)] as const],
    );
    return (
      <g key={name} className={`series-${n + 1}`}>
        <polyline points={points.map(([px, py]) => `${px},${py}`).join(" ")} className="chart-line" />
        {points.map(([px, py]) => (
          <circle key={px} cx={px} cy={py} r={2.5} />
        ))}
      </g>
    );
  });
}
