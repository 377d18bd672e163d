/**
 * An SVG chart of values over time: stacked bars for values that can be added (calls, cost), lines for values that cannot (latency).
 *
 * Invariants:
 * 1. Only values that exist are drawn: a line ends where a time has none, and a single value is a point.
 * 2. A name has the same color in every chart.
 * 3. What the pointer does, keys do too (the chart is a slider over its times; see `use-chart-pointer.ts`); a table below contains all values.
 * 4. Charts in one `ChartGroup` share the crosshair and the series that the legend isolates.
 * 5. A move of the pointer draws the crosshair anew, not the marks.
 */
import { type ReactNode, useId, useMemo } from "react";
import { ChartCursor, CursorTip } from "./chart-cursor.tsx";
import { chartFrame, type ChartSize } from "./chart-frame.ts";
import { useChartGroup, useGroupOnly, useGroupTime } from "./chart-group.tsx";
import { ChartLegend } from "./chart-legend.tsx";
import { ChartMarks } from "./chart-marks.tsx";
import { ChartTable } from "./chart-table.tsx";
import { tipText } from "./chart-tip.tsx";
import { labelPlaces, LEAST_WHOLE, niceTicks } from "./scale.ts";
import { assignColors } from "./series-color.ts";
import type { ChartKind, Series } from "./series.ts";
import { useChartPointer } from "./use-chart-pointer.ts";
import { useWidth } from "./use-width.ts";

export interface TimeChartProps {
  readonly title: string;
  /** What one step of the axis is, e.g. `calls per hour`. */
  readonly unit?: string;
  readonly kind: ChartKind;
  /** The starts of the buckets, `bucketMs` apart: see `timesOf`. */
  readonly times: readonly number[];
  readonly bucketMs: number;
  readonly series: readonly Series[];
  /** The axis shows whole numbers only: for counts. */
  readonly isWhole?: boolean;
  /** Formats a value with its unit. */
  readonly format: (value: number) => string;
  /** How values that are compared are shown, such as those of the axis (`moneyOf`). Default: each with `format`. */
  readonly formatOf?: (values: readonly number[]) => (value: number) => string;
  /** Formats a time for the tooltip and the table. */
  readonly formatTime: (time: number) => string;
  /** Formats a time for the axis. Default: `formatTime`. */
  readonly formatTick?: (time: number) => string;
  /** Default: `normal`. A `strip` is a low histogram without a title, axis and legend, above a list. */
  readonly size?: ChartSize;
  /** Called with the range that a drag selects, in milliseconds: usually `setBetween` of the time range. */
  readonly onSelect?: (from: number, to: number) => void;
  /** Called with the time of a click, and with the series if the click is on its bar: usually opens the list of what happened. */
  readonly onOpen?: (from: number, to: number, series: string | null) => void;
  /** Beside the title, such as a choice of what the chart shows. */
  readonly actions?: ReactNode;
}

const LABEL_WIDTH = 74;

export function TimeChart(props: TimeChartProps) {
  const { title, unit, kind, times, bucketMs, isWhole = false, format, formatTime, size = "normal" } = props;
  const { formatOf, formatTick = formatTime, onSelect, onOpen, actions } = props;
  const [ref, width] = useWidth<HTMLDivElement>();
  const titleId = useId();
  const group = useChartGroup();
  const isolated = useGroupOnly(group);
  const only = props.series.some(({ name }) => name === isolated) ? isolated : null;
  const series = useMemo(
    () => (only === null ? props.series : props.series.filter(({ name }) => name === only)),
    [props.series, only],
  );
  assignColors(props.series.flatMap(({ name, tone }) => (tone === undefined ? [name] : [])));
  const max = highest(kind, times.length, series);
  const ticks = niceTicks(max, isWhole);
  // Without an axis, the largest value needs no round number above it.
  const top = size === "strip" ? Math.max(LEAST_WHOLE, max) : (ticks.at(-1) ?? 1);
  const frame = useMemo(() => chartFrame(size, width, times.length, top), [size, width, times.length, top]);
  const { handlers, selection, isActive } = useChartPointer({
    group,
    frame,
    times,
    bucketMs,
    onSelect,
    onOpen,
  });
  const time = useGroupTime(group);
  const found = time === null ? -1 : times.indexOf(time);
  const shown = found === -1 ? null : found;
  const last = times.length - 1;
  const timeText = (at: number) => {
    const text = formatTime(times[at] ?? 0);
    return selection === null
      ? text
      : `${formatTime(times[selection.first] ?? 0)} – ${formatTime((times[selection.last] ?? 0) + bucketMs)}`;
  };
  const tickFormat = formatOf?.(ticks) ?? format;
  const tickTexts = useMemo(() => times.map(formatTick), [times, formatTick]);
  const area = (
    <div
      ref={ref}
      className={`chart-area ${onSelect === undefined ? "" : "chart-area-zoom"} ${onOpen === undefined ? "" : "chart-area-open"}`}
      tabIndex={0}
      role="slider"
      {...(size === "strip" ? { "aria-label": title } : { "aria-labelledby": titleId })}
      aria-description={hint(onOpen !== undefined, onSelect !== undefined)}
      aria-valuemin={0}
      aria-valuemax={Math.max(0, last)}
      aria-valuenow={shown ?? Math.max(0, last)}
      aria-valuetext={last < 0 ? "no data" : tipText(timeText(shown ?? last), shown ?? last, series, format)}
      {...handlers}
    >
      {width > 0 && (
        <svg width={width} height={frame.height} aria-hidden="true">
          {size !== "strip" &&
            ticks.map((tick) => (
              <g key={tick}>
                <line
                  x1={frame.left}
                  x2={width - frame.right}
                  y1={frame.y(tick)}
                  y2={frame.y(tick)}
                  className="grid-line"
                />
                <text x={frame.left - 8} y={frame.y(tick)} dy="0.32em" className="axis-label axis-label-end">
                  {tickFormat(tick)}
                </text>
              </g>
            ))}
          <ChartCursor frame={frame} index={shown} selection={selection} />
          <ChartMarks kind={kind} series={series} frame={frame} />
          {size === "strip" && (
            <line x1={0} x2={width} y1={frame.y(0)} y2={frame.y(0)} className="grid-line" />
          )}
          {labelPlaces(tickTexts, frame.slot, LABEL_WIDTH).map((at) =>
            frame.x(at) + LABEL_WIDTH * 0.6 < width ? (
              <text key={at} x={frame.x(at)} y={frame.height - 6} className="axis-label">
                {tickTexts[at]}
              </text>
            ) : null,
          )}
        </svg>
      )}
      {isActive && shown !== null && times.length > 0 && (
        <CursorTip frame={frame} index={shown} time={timeText(shown)} series={series} format={format} />
      )}
    </div>
  );
  if (size === "strip") return area;
  return (
    <figure className="panel chart" aria-labelledby={titleId}>
      <figcaption className="chart-head">
        <h3 id={titleId}>
          {title}
          {unit !== undefined && <span className="chart-unit"> {unit}</span>}
        </h3>
        {actions}
        <ChartLegend series={props.series} only={only} onOnly={(name) => group.set({ only: name })} />
      </figcaption>
      {area}
      <ChartTable title={title} times={times} series={series} format={format} formatTime={formatTime} />
    </figure>
  );
}

function hint(canOpen: boolean, canSelect: boolean): string | undefined {
  const parts = [
    ...(canOpen ? ["Enter opens what happened at this time"] : []),
    ...(canSelect ? ["Shift and arrow keys select a range, Enter shows it"] : []),
  ];
  return parts.length === 0 ? undefined : `${parts.join(". ")}.`;
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
