/**
 * An SVG chart of values over time, one color per series: stacked bars for values that can be added (calls, cost), lines for values
 * that cannot (latency). A table below the chart contains the same values for screen readers.
 */
import { type PointerEvent, useId, useState } from "react";
import { ChartTable } from "./chart-table.tsx";
import { ChartMarks } from "./chart-marks.tsx";
import { labelEvery, niceTicks } from "./scale.ts";
import type { ChartKind, Series } from "./series.ts";
import { useWidth } from "./use-width.ts";

interface TimeChartProps {
  readonly title: string;
  readonly kind: ChartKind;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** The axis shows whole numbers only: for counts. */
  readonly isWhole?: boolean;
  readonly format: (value: number) => string;
  readonly formatTime: (time: number) => string;
}

const HEIGHT = 190;
const MARGIN = { top: 10, right: 4, bottom: 24, left: 52 };

export function TimeChart({
  title,
  kind,
  times,
  series,
  isWhole = false,
  format,
  formatTime,
}: TimeChartProps) {
  const [ref, width] = useWidth<HTMLDivElement>();
  const [hovered, setHovered] = useState<number | null>(null);
  const titleId = useId();
  const inner = {
    width: Math.max(0, width - MARGIN.left - MARGIN.right),
    height: HEIGHT - MARGIN.top - MARGIN.bottom,
  };
  const ticks = niceTicks(highest(kind, times.length, series), isWhole);
  const top = ticks.at(-1) ?? 1;
  const slot = times.length === 0 ? 0 : inner.width / times.length;
  const y = (value: number) => MARGIN.top + inner.height * (1 - value / top);
  const x = (index: number) => MARGIN.left + slot * index;
  const every = labelEvery(times.length, inner.width, 86);
  const track = (event: PointerEvent<SVGSVGElement>) => {
    const offset = event.clientX - event.currentTarget.getBoundingClientRect().left - MARGIN.left;
    const index = Math.floor(offset / slot);
    setHovered(index >= 0 && index < times.length ? index : null);
  };
  return (
    <figure className="panel chart" aria-labelledby={titleId}>
      <figcaption className="chart-head">
        <h3 id={titleId}>{title}</h3>
        <ul className="legend">
          {series.map(({ name }, i) => (
            <li key={name}>
              <span className={`swatch series-${i + 1}`} />
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      <div ref={ref} className="chart-area">
        {width > 0 && (
          <svg
            width={width}
            height={HEIGHT}
            role="img"
            aria-labelledby={titleId}
            onPointerMove={track}
            onPointerLeave={() => setHovered(null)}
          >
            {ticks.map((tick) => (
              <g key={tick}>
                <line
                  x1={MARGIN.left}
                  x2={width - MARGIN.right}
                  y1={y(tick)}
                  y2={y(tick)}
                  className="grid-line"
                />
                <text x={MARGIN.left - 8} y={y(tick)} dy="0.32em" className="axis-label axis-label-end">
                  {format(tick)}
                </text>
              </g>
            ))}
            {hovered !== null && (
              <rect
                x={x(hovered)}
                y={MARGIN.top}
                width={slot}
                height={inner.height}
                className="chart-cursor"
              />
            )}
            <ChartMarks kind={kind} series={series} slot={slot} x={x} y={y} />
            {times.map((time, i) =>
              i % every === 0 ? (
                <text key={time} x={x(i)} y={HEIGHT - 6} className="axis-label">
                  {formatTime(time)}
                </text>
              ) : null,
            )}
          </svg>
        )}
        {hovered !== null && (
          <div
            className={`chart-tip ${x(hovered) > width / 2 ? "chart-tip-left" : "chart-tip-right"}`}
            aria-hidden="true"
          >
            <strong>{formatTime(times[hovered] ?? 0)}</strong>
            {series.map(({ name, values }, i) => {
              const value = values[hovered];
              return value == null ? null : (
                <span key={name}>
                  <span className={`swatch series-${i + 1}`} /> {name}: {format(value)}
                </span>
              );
            })}
          </div>
        )}
      </div>
      <ChartTable title={title} times={times} series={series} format={format} formatTime={formatTime} />
    </figure>
  );
}

function highest(kind: ChartKind, length: number, series: readonly Series[]): number {
  let max = 0;
  for (let i = 0; i < length; i++) {
    const values = series.map(({ values: all }) => all[i] ?? 0);
    max = Math.max(
      max,
      kind === "bars" ? values.reduce((sum, value) => sum + value, 0) : Math.max(0, ...values),
    );
  }
  return max;
}
