import { useMemo } from "react";
import { ChartGroup } from "../../../components/chart/chart-group.tsx";
import { TimeChart } from "../../../components/chart/time-chart.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import { formatPoint, formatTick, perBucket, timesOf } from "../../../components/time-range/time-range.ts";
import { type TimeRangeState, useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { count, duration, durationOf, money, moneyOf } from "../../../format/number.ts";
import { useQueryValue } from "../../../routing/location.ts";
import { useOpenLogs } from "../logs/use-open-logs.ts";
import { type Breakdown, bucketTotals, groupTotals, pointSeries, sumSeries } from "./to-series.ts";
import type { UsageTotal } from "./usage-total.ts";
import { UsageTiles } from "./usage-tiles.tsx";
import { type UsageOverTime, useUsage } from "./use-usage.ts";

/** Usage over time of one gateway, or of all gateways if `gatewayId` is null. */
export function AnalyticsTab({ gatewayId }: { readonly gatewayId: string | null }) {
  const time = useTimeRange();
  const [by, setBy] = useQueryValue("series", "provider");
  const breakdown: Breakdown = by === "model" ? "model" : "provider";
  const usage = useUsage(gatewayId, time.range, breakdown);
  return (
    <div className="stack">
      <div className="toolbar">
        <TimeRangePicker state={time} />
        <Field label="Group by">
          <select value={breakdown} onChange={({ target }) => setBy(target.value)}>
            <option value="provider">Provider</option>
            <option value="model">Model</option>
          </select>
        </Field>
      </div>
      <ResourceView of={usage}>
        {(value) =>
          value.rows.length === 0 ? (
            <EmptyState title="No calls in this time range">
              <p>
                Metrics appear a few seconds after the first call through the gateway. Select a longer time
                range to see older calls.
              </p>
            </EmptyState>
          ) : (
            <UsageCharts usage={value} gatewayId={gatewayId} time={time} />
          )
        }
      </ResourceView>
    </div>
  );
}

interface UsageChartsProps {
  readonly usage: UsageOverTime;
  readonly gatewayId: string | null;
  readonly time: TimeRangeState;
}

function UsageCharts({ usage: { rows, before, range, breakdown }, gatewayId, time }: UsageChartsProps) {
  const openLogs = useOpenLogs(gatewayId);
  const groups = useMemo(() => groupTotals(rows, breakdown, range), [rows, breakdown, range]);
  const buckets = useMemo(() => bucketTotals(rows, range), [rows, range]);
  const common = useMemo(
    () => ({
      times: timesOf(range),
      bucketMs: range.bucketMs,
      formatTime: formatPoint(range.step),
      formatTick: formatTick(range),
    }),
    [range],
  );
  const charts = useMemo(() => {
    const sum = (value: (total: UsageTotal) => number) => sumSeries(groups, value);
    return {
      calls: sum(({ calls }) => calls),
      errors: sum(({ errors }) => errors),
      tokens: sum((total) => total.tokens_in + total.tokens_out),
      cost: sum(({ cost }) => cost),
      latency: pointSeries(groups, (total) => total.duration_p95),
    };
  }, [groups]);
  const per = perBucket(range);
  const actions = {
    onSelect: time.setBetween,
    onOpen: (from: number, to: number, series: string | null) =>
      openLogs({ from, to, ...(series === null ? {} : { [breakdown]: series }) }),
  };
  const openErrors = (from: number, to: number, series: string | null) =>
    openLogs({ from, to, outcome: "error", ...(series === null ? {} : { [breakdown]: series }) });
  return (
    <>
      <UsageTiles rows={rows} before={before} buckets={buckets} />
      <ChartGroup>
        <div className="charts">
          <TimeChart
            title="Calls"
            unit={per}
            kind="bars"
            series={charts.calls}
            isWhole
            format={count}
            {...common}
            {...actions}
          />
          <TimeChart
            title="Errors"
            unit={per}
            kind="bars"
            series={charts.errors}
            isWhole
            format={count}
            {...common}
            {...actions}
            onOpen={openErrors}
          />
          <TimeChart
            title="Tokens"
            unit={per}
            kind="bars"
            series={charts.tokens}
            isWhole
            format={count}
            {...common}
            {...actions}
          />
          <TimeChart
            title="Cost"
            unit={`USD ${per}`}
            kind="bars"
            series={charts.cost}
            format={money}
            formatOf={moneyOf}
            {...common}
            {...actions}
          />
          <TimeChart
            title="Latency"
            unit="p95"
            kind="lines"
            series={charts.latency}
            format={duration}
            formatOf={durationOf}
            {...common}
            {...actions}
          />
        </div>
      </ChartGroup>
    </>
  );
}
