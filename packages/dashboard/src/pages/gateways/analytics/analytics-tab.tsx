import { TimeChart } from "../../../components/chart/time-chart.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import { formatPoint, formatTick, timesOf } from "../../../components/time-range/time-range.ts";
import { useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { count, duration, money } from "../../../format/number.ts";
import { useQueryValue } from "../../../routing/location.ts";
import { pointSeries, sumSeries } from "./to-series.ts";
import { UsageTiles } from "./usage-tiles.tsx";
import type { Usage } from "./usage.ts";
import { type UsageOverTime, useUsage } from "./use-usage.ts";

/** Usage over time of one gateway, or of all gateways if `gatewayId` is null. */
export function AnalyticsTab({ gatewayId }: { readonly gatewayId: string | null }) {
  const time = useTimeRange();
  const [by, setBy] = useQueryValue("series", "provider");
  const breakdown = by === "model" ? "model" : "provider";
  const usage = useUsage(gatewayId, time.range, breakdown);
  return (
    <div className="stack">
      <div className="filters">
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
            <UsageCharts {...value} />
          )
        }
      </ResourceView>
    </div>
  );
}

function UsageCharts({ rows, before, range, breakdown }: UsageOverTime) {
  const times = timesOf(range);
  const sum = (value: (row: Usage) => number) => sumSeries(rows, breakdown, times, value);
  const common = { times, formatTime: formatPoint(range.step), formatTick: formatTick(range) };
  const per = `per ${range.step}`;
  return (
    <>
      <UsageTiles rows={rows} before={before} times={times} />
      <div className="charts">
        <TimeChart
          title="Calls"
          unit={per}
          kind="bars"
          series={sum((row) => row.calls)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart
          title="Errors"
          unit={per}
          kind="bars"
          series={sum((row) => row.errors)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart
          title="Tokens"
          unit={per}
          kind="bars"
          series={sum((row) => row.tokens_in + row.tokens_out)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart
          title="Cost"
          unit={`USD ${per}`}
          kind="bars"
          series={sum((row) => row.cost)}
          format={money}
          {...common}
        />
        <TimeChart
          title="Latency"
          unit="p95"
          kind="lines"
          series={pointSeries(rows, breakdown, times, (row) => row.duration_p95)}
          format={duration}
          {...common}
        />
      </div>
    </>
  );
}
