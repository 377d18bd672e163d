import { useEffect, useState } from "react";
import { TimeChart } from "../../../components/chart/time-chart.tsx";
import { EmptyState } from "../../../components/empty-state.tsx";
import { DetailList } from "../../../components/detail-list.tsx";
import { Field } from "../../../components/field.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { count, duration, money, share } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { pointSeries, type Span, sumSeries, timesOf } from "./to-series.ts";
import type { Usage } from "./usage.ts";

const HOUR_MS = 3_600_000;
const REFRESH_MS = 10_000;

const RANGES = [
  { name: "24h", title: "Last 24 hours", hours: 24, step: "hour" },
  { name: "3d", title: "Last 3 days", hours: 72, step: "hour" },
  { name: "30d", title: "Last 30 days", hours: 30 * 24, step: "day" },
] as const;

/** Usage over time of one gateway, or of all gateways if `gatewayId` is null. */
export function AnalyticsTab({ gatewayId }: { readonly gatewayId: string | null }) {
  const { api } = useAccountPaths();
  const [rangeName, setRange] = useQueryValue("range", "24h");
  const [by, setBy] = useQueryValue("by", "provider");
  const breakdown = by === "model" ? "model" : "provider";
  const range = RANGES.find(({ name }) => name === rangeName) ?? RANGES[0];
  const end = useEndOfHour();
  const span: Span = { from: end - range.hours * HOUR_MS, to: end, step: range.step };
  const query = {
    gateway_id: gatewayId,
    start: new Date(span.from).toISOString(),
    end: new Date(span.to).toISOString(),
  };
  const path = withQuery(api("ai-gateway", "usage"), { ...query, group_by: `${span.step},${breakdown}` });
  const totalPath = withQuery(api("ai-gateway", "usage"), query);
  const usage = useResource(
    path,
    async (signal) => {
      const [rows, totals] = await Promise.all([
        read<Usage[]>(path, signal),
        read<Usage[]>(totalPath, signal),
      ]);
      return { rows, total: totals[0], span, breakdown } as const;
    },
    { refreshMs: REFRESH_MS },
  );
  return (
    <div className="stack">
      <div className="filters">
        <Field label="Time range">
          <select value={range.name} onChange={({ target }) => setRange(target.value)}>
            {RANGES.map(({ name, title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </Field>
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

interface UsageChartsProps {
  readonly rows: readonly Usage[];
  readonly total: Usage | undefined;
  readonly span: Span;
  readonly breakdown: "provider" | "model";
}

function UsageCharts({ rows, total, span, breakdown }: UsageChartsProps) {
  const times = timesOf(span);
  const formatTime = (time: number) =>
    new Date(time).toLocaleString(
      undefined,
      span.step === "hour"
        ? { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", hour12: false }
        : { day: "numeric", month: "short" },
    );
  const sum = (value: (row: Usage) => number) => sumSeries(rows, breakdown, times, value);
  const common = { times, formatTime } as const;
  return (
    <>
      {total !== undefined && (
        <section className="panel" aria-label="Totals">
          <DetailList
            items={[
              ["Calls", count(total.calls)],
              ["Errors", `${count(total.errors)} (${share(total.errors, total.calls)})`],
              ["Cached", share(total.cached, total.calls)],
              ["Input tokens", count(total.tokens_in)],
              ["Output tokens", count(total.tokens_out)],
              ["Cost", money(total.cost)],
              ["Median latency", duration(total.duration_p50)],
              ["p95 latency", duration(total.duration_p95)],
            ]}
          />
        </section>
      )}
      <div className="charts">
        <TimeChart
          title="Calls"
          kind="bars"
          series={sum((row) => row.calls)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart
          title="Errors"
          kind="bars"
          series={sum((row) => row.errors)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart
          title="Tokens"
          kind="bars"
          series={sum((row) => row.tokens_in + row.tokens_out)}
          isWhole
          format={count}
          {...common}
        />
        <TimeChart title="Cost" kind="bars" series={sum((row) => row.cost)} format={money} {...common} />
        <TimeChart
          title="p95 latency"
          kind="lines"
          series={pointSeries(rows, breakdown, times, (row) => row.duration_p95)}
          format={duration}
          {...common}
        />
      </div>
    </>
  );
}

/** The end of the current hour. It changes only once an hour, so renders share one time span, and an open page stays current. */
function useEndOfHour(): number {
  const [end, setEnd] = useState(endOfHour);
  useEffect(() => {
    const timer = setInterval(() => setEnd(endOfHour()), 60_000);
    return () => clearInterval(timer);
  }, []);
  return end;
}

function endOfHour(): number {
  return Math.ceil(Date.now() / HOUR_MS) * HOUR_MS;
}
