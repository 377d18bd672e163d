/** The listed deliveries over time, by outcome. A click opens the deliveries of a bar, a drag narrows the time range. */
import type { DeliveryStep } from "@signalbox/client";
import { useMemo } from "react";
import type { Series } from "../../components/chart/series.ts";
import { TimeChart } from "../../components/chart/time-chart.tsx";
import {
  formatPoint,
  formatTick,
  perBucket,
  type TimeRange,
  timesOf,
} from "../../components/time-range/time-range.ts";
import { count } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { setQueryValues } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { DeliveryStatus } from "./webhook.ts";

const REFRESH_MS = 10_000;
const OUTCOMES: readonly (readonly [status: DeliveryStatus, tone: NonNullable<Series["tone"]>])[] = [
  ["accepted", "good"],
  ["duplicate", "accent"],
  ["rejected", "warn"],
  ["failed", "bad"],
];

interface DeliveryChartProps {
  readonly range: TimeRange;
  /** Filters other than status and times. */
  readonly filter: Readonly<Record<string, string>>;
  readonly onSelect: (from: number, to: number) => void;
}

export function DeliveryChart({ range, filter, onSelect }: DeliveryChartProps) {
  const { api } = useAccountPaths();
  const times = useMemo(() => timesOf(range), [range]);
  const path = withQuery(api("webhooks", "deliveries", "histogram"), {
    ...filter,
    since: new Date(times[0] ?? range.from).toISOString(),
    until: new Date(range.to).toISOString(),
    step_seconds: range.bucketMs / 1000,
  });
  const steps = useResource(path, (signal) => read<DeliveryStep[]>(path, signal), {
    refreshMs: REFRESH_MS,
    identity: `${range.name} ${JSON.stringify(filter)}`,
  });
  const series = useMemo(() => toSeries(steps.value ?? [], times), [steps.value, times]);
  return (
    <TimeChart
      title="Deliveries"
      unit={perBucket(range)}
      kind="bars"
      times={times}
      bucketMs={range.bucketMs}
      series={series}
      isWhole
      format={count}
      formatTime={formatPoint(range.step)}
      formatTick={formatTick(range)}
      onSelect={onSelect}
      onOpen={(from, to, status) => {
        onSelect(from, to);
        if (status !== null) setQueryValues({ status });
      }}
    />
  );
}

/** Outcomes that did not occur are not in the legend. */
function toSeries(steps: readonly DeliveryStep[], times: readonly number[]): Series[] {
  const ofTime = new Map(steps.map((step) => [Date.parse(step.at), step]));
  const all = OUTCOMES.map(([status, tone]) => ({
    name: status,
    tone,
    values: times.map((time) => ofTime.get(time)?.[status] ?? 0),
  }));
  const found = all.filter(({ values }) => values.some((value) => value > 0));
  return found.length === 0 ? all.slice(0, 1) : found;
}
