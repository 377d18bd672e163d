/**
 * An SVG chart of values over time: stacked bars for values that can be added (calls, cost), lines for values that cannot (latency).
 *
 * Invariants:
 * 1. Only values that exist are drawn: a line ends where a time has none, and a single value is a point.
 * 2. A name has the same color in every chart.
 * 3. What the pointer shows, the arrow keys show too (the chart is a slider over its times); a table below contains all values.
 */
import { type KeyboardEvent, type PointerEvent, useId, useState } from "react";
import { ChartMarks } from "./chart-marks.tsx";
import { ChartTable } from "./chart-table.tsx";
import { ChartTip, tipText } from "./chart-tip.tsx";
import { labelPlaces, niceTicks } from "./scale.ts";
import { assignColors, colorClass } from "./series-color.ts";
import type { ChartKind, Series } from "./series.ts";
import { useWidth } from "./use-width.ts";

interface TimeChartProps {
  readonly title: string;
  /** What one step of the axis is, e.g. `calls per hour`. */
  readonly unit?: string;
  readonly kind: ChartKind;
  readonly times: readonly number[];
  readonly series: readonly Series[];
  /** The axis shows whole numbers only: for counts. */
  readonly isWhole?: boolean;
  /** Formats a value with its unit. */
  readonly format: (value: number) => string;
  /** Formats a time for the tooltip and the table. */
  readonly formatTime: (time: number) => string;
  /** Formats a time for the axis. Default: `formatTime`. */
  readonly formatTick?: (time: number) => string;
}

const HEIGHT = 190;
const MARGIN = { top: 10, right: 4, bottom: 24, left: 56 };
const LABEL_WIDTH = 74;

export function TimeChart(props: TimeChartProps) {
  const { title, unit, kind, times, series, isWhole = false, format, formatTime } = props;
  const formatTick = props.formatTick ?? formatTime;
  const [ref, width] = useWidth<HTMLDivElement>();
  const [index, setIndex] = useState<number | null>(null);
  const titleId = useId();
  assignColors(series.flatMap(({ name, tone }) => (tone === undefined ? [name] : [])));
  const innerWidth = Math.max(0, width - MARGIN.left - MARGIN.right);
  const innerHeight = HEIGHT - MARGIN.top - MARGIN.bottom;
  const ticks = niceTicks(highest(kind, times.length, series), isWhole);
  const top = ticks.at(-1) ?? 1;
  const slot = times.length === 0 ? 0 : innerWidth / times.length;
  const y = (value: number) => MARGIN.top + innerHeight * (1 - value / top);
  const x = (at: number) => MARGIN.left + slot * at;
  const tickTexts = times.map(formatTick);
  const last = times.length - 1;
  const shown = index === null ? null : Math.min(index, last);
  const track = (event: PointerEvent<HTMLDivElement>) => {
    const offset = event.clientX - event.currentTarget.getBoundingClientRect().left - MARGIN.left;
    const at = Math.floor(offset / slot);
    setIndex(at >= 0 && at <= last ? at : null);
  };
  const step = (event: KeyboardEvent) => {
    const next = nextIndex(event.key, shown, last);
    if (next === undefined) return;
    event.preventDefault();
    setIndex(next);
  };
  const timeText = (at: number) => formatTime(times[at] ?? 0);
  return (
    <figure className="panel chart" aria-labelledby={titleId}>
      <figcaption className="chart-head">
        <h3 id={titleId}>
          {title}
          {unit !== undefined && <span className="chart-unit"> {unit}</span>}
        </h3>
        <ul className="legend">
          {series.map((one) => (
            <li key={one.name}>
              <span className={`swatch ${colorClass(one)}`} />
              {one.name}
            </li>
          ))}
        </ul>
      </figcaption>
      <div
        ref={ref}
        className="chart-area"
        tabIndex={0}
        role="slider"
        aria-labelledby={titleId}
        aria-valuemin={0}
        aria-valuemax={Math.max(0, last)}
        aria-valuenow={shown ?? Math.max(0, last)}
        aria-valuetext={
          last < 0 ? "no data" : tipText(timeText(shown ?? last), shown ?? last, series, format)
        }
        onPointerMove={track}
        onPointerLeave={() => setIndex(null)}
        onFocus={(event) => event.currentTarget.matches(":focus-visible") && setIndex((at) => at ?? last)}
        onBlur={() => setIndex(null)}
        onKeyDown={step}
      >
        {width > 0 && (
          <svg width={width} height={HEIGHT} aria-hidden="true">
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
            {shown !== null && (
              <rect
                x={x(shown)}
                y={MARGIN.top}
                width={Math.max(slot, 2)}
                height={innerHeight}
                className="chart-cursor"
              />
            )}
            <ChartMarks kind={kind} series={series} slot={slot} x={x} y={y} />
            {labelPlaces(tickTexts, slot, LABEL_WIDTH).map((at) =>
              x(at) + LABEL_WIDTH * 0.6 < width ? (
                <text key={at} x={x(at)} y={HEIGHT - 6} className="axis-label">
                  {tickTexts[at]}
                </text>
              ) : null,
            )}
          </svg>
        )}
        {shown !== null && times.length > 0 && (
          <ChartTip
            time={timeText(shown)}
            index={shown}
            series={series}
            format={format}
            isLeft={x(shown) > width / 2}
          />
        )}
      </div>
      <ChartTable title={title} times={times} series={series} format={format} formatTime={formatTime} />
    </figure>
  );
}

/** Undefined: the key does not move the cursor. */
function nextIndex(key: string, index: number | null, last: number): number | null | undefined {
  const at = index ?? last;
  switch (key) {
    case "ArrowLeft":
    case "ArrowDown":
      return Math.max(0, at - 1);
    case "ArrowRight":
    case "ArrowUp":
      return Math.min(last, at + 1);
    case "PageDown":
      return Math.max(0, at - 10);
    case "PageUp":
      return Math.min(last, at + 10);
    case "Home":
      return 0;
    case "End":
      return last;
    case "Escape":
      return index === null ? undefined : null;
    default:
      return undefined;
  }
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
