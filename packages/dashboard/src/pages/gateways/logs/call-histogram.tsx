import { useMemo } from "react";
import { TimeChart } from "../../../components/chart/time-chart.tsx";
import {
  bucketAt,
  formatPoint,
  formatTick,
  type TimeRange,
  timesOf,
} from "../../../components/time-range/time-range.ts";
import { count } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { bucketTotals } from "../analytics/to-series.ts";
import type { Usage } from "../analytics/usage.ts";
import type { LogFilterState } from "./use-log-filters.ts";

const REFRESH_MS = 30_000;

interface CallHistogramProps {
  /** Null for all gateways. */
  readonly gatewayId: string | null;
  readonly filters: LogFilterState;
}

/**
 * Calls over the time range of the list, with the filters that the sums of usage know; a text or metadata is not among them, and nothing is shown
 * then. A drag or a click selects a part of the time.
 */
export function CallHistogram({ gatewayId, filters }: CallHistogramProps) {
  const { api } = useAccountPaths();
  const { range, setBetween } = filters.time;
  const [provider, model, outcome, cached] = [
    filters.provider[0],
    filters.model[0],
    filters.outcome[0],
    filters.cached[0],
  ];
  const isKnown = [filters.text, filters.metadata, filters.entry].every(([value]) => value === "");
  const groups = [range.step, ...(provider === "" ? [] : ["provider"]), ...(model === "" ? [] : ["model"])];
  const path = withQuery(api("ai-gateway", "usage"), {
    gateway_id: gatewayId ?? filters.gateway[0],
    start: new Date(bucketAt(range.from, range.bucketMs)).toISOString(),
    end: new Date(range.to).toISOString(),
    group_by: groups.join(","),
  });
  const usage = useResource(
    isKnown ? path : null,
    async (signal) => ({ rows: await read<Usage[]>(path, signal), range }),
    { refreshMs: REFRESH_MS, identity: `${gatewayId ?? filters.gateway[0]} ${range.name} ${groups.join()}` },
  );
  const shown = usage.value;
  if (!isKnown || shown === undefined) return <div className="log-histogram" />;
  return (
    <div className="log-histogram">
      <Histogram
        rows={shown.rows.filter((row) => contains(row.provider, provider) && contains(row.model, model))}
        range={shown.range}
        outcome={outcome}
        cached={cached}
        onSelect={setBetween}
      />
    </div>
  );
}

interface HistogramProps {
  readonly rows: readonly Usage[];
  readonly range: TimeRange;
  readonly outcome: string;
  readonly cached: string;
  readonly onSelect: (from: number, to: number) => void;
}

function Histogram({ rows, range, outcome, cached, onSelect }: HistogramProps) {
  const series = useMemo(() => {
    const totals = bucketTotals(rows, range);
    const values = (value: (total: NonNullable<(typeof totals)[number]>) => number) =>
      totals.map((total) => (total === null ? 0 : value(total)));
    if (cached === "true")
      return [{ name: "Cached", tone: "accent", values: values((total) => total.cached) } as const];
    const errors = { name: "Errors", tone: "bad", values: values((total) => total.errors) } as const;
    if (outcome === "error") return [errors];
    const hidden = (total: { readonly cached: number }) => (cached === "false" ? total.cached : 0);
    const good = {
      name: "Success",
      tone: "accent",
      values: values((total) => Math.max(0, total.calls - total.errors - hidden(total))),
    } as const;
    return outcome === "success" ? [good] : [good, errors];
  }, [rows, range, outcome, cached]);
  const times = useMemo(() => timesOf(range), [range]);
  const tick = useMemo(() => formatTick(range), [range]);
  return (
    <TimeChart
      title={`Calls, ${range.title}`}
      size="strip"
      kind="bars"
      times={times}
      bucketMs={range.bucketMs}
      series={series}
      isWhole
      format={count}
      formatTime={formatPoint(range.step)}
      formatTick={tick}
      onSelect={onSelect}
      onOpen={onSelect}
    />
  );
}

function contains(name: string | undefined, part: string): boolean {
  return part === "" || (name ?? "").toLowerCase().includes(part.toLowerCase());
}
