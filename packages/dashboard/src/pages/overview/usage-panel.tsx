/** The calls of the time range as one chart: the figures above it choose what it shows. A drag selects a time, a click opens its calls. */
import { useMemo } from "react";
import { TimeChart } from "../../components/chart/time-chart.tsx";
import { formatPoint, formatTick, perBucket, timesOf } from "../../components/time-range/time-range.ts";
import { StatTile, StatTiles } from "../../components/stat-tile.tsx";
import type { TimeRangeState } from "../../components/time-range/use-time-range.ts";
import { count, duration, durationOf, money, moneyOf, share } from "../../format/number.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import { bucketTotals, groupTotals, pointSeries, sumSeries } from "../gateways/analytics/to-series.ts";
import type { UsageTotal } from "../gateways/analytics/usage-total.ts";
import { useOpenLogs } from "../gateways/logs/use-open-logs.ts";
import type { RangeUsage } from "./use-usage.ts";

interface UsagePanelProps {
  readonly usage: RangeUsage;
  readonly gatewayId: string | null;
  readonly time: TimeRangeState;
}

const METRICS = ["calls", "errors", "cost", "tokens", "p95"] as const;
type Metric = (typeof METRICS)[number];

export function UsagePanel({ usage, gatewayId, time }: UsagePanelProps) {
  const { page } = useAccountPaths();
  const [name, setName] = useQueryValue("show", "calls");
  const metric = METRICS.find((one) => one === name) ?? "calls";
  const details = gatewayId === null ? page("usage") : page("gateways", gatewayId, "analytics");
  return (
    <section className="panel usage-panel" aria-label="Gateways">
      <MetricTiles usage={usage} metric={metric} onMetric={setName} />
      <MetricChart usage={usage} metric={metric} gatewayId={gatewayId} time={time} />
      <Link to={`${details}?range=${usage.range.name}`} className="small usage-more">
        All usage
      </Link>
    </section>
  );
}

interface MetricTilesProps {
  readonly usage: RangeUsage;
  readonly metric: Metric;
  readonly onMetric: (metric: Metric) => void;
}

/** Where there were no calls, a count is zero, but a rate or a latency has no value. */
function MetricTiles({ usage: { total, before }, metric, onMetric }: MetricTilesProps) {
  const tile = (name: Metric) => ({ isPressed: metric === name, onPress: () => onMetric(name) });
  const errorRate = (of: UsageTotal | null) => (of === null ? null : of.errors / of.calls);
  const tokens = (of: UsageTotal | null) => (of === null ? null : of.tokens_in + of.tokens_out);
  return (
    <StatTiles label="Totals">
      <StatTile
        label="Calls"
        value={count(total?.calls ?? 0)}
        note={total === null ? undefined : `${share(total.cached, total.calls)} cached `}
        change={{ now: total?.calls ?? 0, before: before?.calls ?? null }}
        {...tile("calls")}
      />
      <StatTile
        label="Error rate"
        value={total === null ? "–" : share(total.errors, total.calls)}
        note={
          total === null ? undefined : total.errors === 1 ? "one error " : `${count(total.errors)} errors `
        }
        change={{ now: errorRate(total), before: errorRate(before), goodWhen: "lower" }}
        {...tile("errors")}
      />
      <StatTile
        label="Cost"
        value={total === null ? "$0" : money(total.cost)}
        change={{ now: total?.cost ?? 0, before: before?.cost ?? null }}
        {...tile("cost")}
      />
      <StatTile
        label="Tokens"
        value={count(tokens(total) ?? 0)}
        change={{ now: tokens(total), before: tokens(before) }}
        {...tile("tokens")}
      />
      <StatTile
        label="p95 latency"
        value={duration(total?.duration_p95)}
        note={total === null ? undefined : `median ${duration(total.duration_p50)} `}
        change={{
          now: total?.duration_p95 ?? null,
          before: before?.duration_p95 ?? null,
          goodWhen: "lower",
        }}
        {...tile("p95")}
      />
    </StatTiles>
  );
}

interface MetricChartProps extends UsagePanelProps {
  readonly metric: Metric;
}

function MetricChart({ usage: { rows, range }, metric, gatewayId, time }: MetricChartProps) {
  const openLogs = useOpenLogs(gatewayId);
  const groups = useMemo(() => groupTotals(rows, "model", range), [rows, range]);
  const times = useMemo(() => timesOf(range), [range]);
  const tick = useMemo(() => formatTick(range), [range]);
  const series = useMemo(() => {
    const sum = (value: (total: UsageTotal) => number) => sumSeries(groups, value);
    const errors = () => ({
      name: "Errors",
      tone: "bad" as const,
      values: bucketTotals(rows, range).map((total) => total?.errors ?? 0),
    });
    switch (metric) {
      case "calls":
        return [...sum(({ calls, errors: failed }) => calls - failed), errors()];
      case "errors":
        return sum(({ errors: failed }) => failed);
      case "cost":
        return sum(({ cost }) => cost);
      case "tokens":
        return sum((total) => total.tokens_in + total.tokens_out);
      case "p95":
        return pointSeries(groups, (total) => total.duration_p95);
    }
  }, [groups, metric, rows, range]);
  const isCount = metric === "calls" || metric === "errors" || metric === "tokens";
  const formats = isCount
    ? { format: count, isWhole: true }
    : metric === "cost"
      ? { format: money, formatOf: moneyOf }
      : { format: duration, formatOf: durationOf };
  const titles: Readonly<Record<Metric, readonly [title: string, unit: string]>> = {
    calls: ["Calls", `by model, ${perBucket(range)}`],
    errors: ["Errors", `by model, ${perBucket(range)}`],
    cost: ["Cost", `USD by model, ${perBucket(range)}`],
    tokens: ["Tokens", `by model, ${perBucket(range)}`],
    p95: ["Latency", "p95 by model"],
  };
  const [title, unit] = titles[metric];
  return (
    <TimeChart
      title={title}
      unit={unit}
      kind={metric === "p95" ? "lines" : "bars"}
      size="large"
      times={times}
      bucketMs={range.bucketMs}
      series={series}
      formatTime={formatPoint(range.step)}
      formatTick={tick}
      onSelect={time.setBetween}
      onOpen={(from, to, name) =>
        openLogs({
          from,
          to,
          ...(metric === "errors" || name === "Errors" ? { outcome: "error" as const } : {}),
          ...(name === null || name === "Errors" ? {} : { model: name }),
        })
      }
      {...formats}
    />
  );
}
