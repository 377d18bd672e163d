/** One user or session: what it cost over time, with which models, and its calls as a conversation. */
import { useMemo } from "react";
import { ChartGroup } from "../../../components/chart/chart-group.tsx";
import { TimeChart } from "../../../components/chart/time-chart.tsx";
import { PageHeader } from "../../../components/page-header.tsx";
import { ResourceView } from "../../../components/resource-view.tsx";
import { StatTile, StatTiles } from "../../../components/stat-tile.tsx";
import { Table } from "../../../components/table.tsx";
import { TimeRangePicker } from "../../../components/time-range/time-range-picker.tsx";
import {
  bucketAt,
  formatPoint,
  formatTick,
  perBucket,
  type TimeRange,
  timesOf,
} from "../../../components/time-range/time-range.ts";
import { type TimeRangeState, useTimeRange } from "../../../components/time-range/use-time-range.ts";
import { count, duration, durationOf, money, moneyOf, share } from "../../../format/number.ts";
import { read, withQuery } from "../../../http/api.ts";
import { useResource } from "../../../http/use-resource.ts";
import { Link } from "../../../routing/link.tsx";
import { useQueryValue } from "../../../routing/location.ts";
import { useAccountPaths } from "../../../session/session.ts";
import { bucketTotals } from "../analytics/to-series.ts";
import { totalOf } from "../analytics/usage-total.ts";
import type { Usage } from "../analytics/usage.ts";
import { SESSION_KEYS } from "../logs/related-calls.tsx";
import { useLogsAddress, useOpenLogs } from "../logs/use-open-logs.ts";
import { Conversation } from "./conversation.tsx";
import { groupOf, type WhomKind } from "./whom-kind.ts";

export function UserPage({ name }: { readonly name: string }) {
  return <WhomPage kind={{ kind: "user", key: "user" }} value={name} />;
}

export function SessionPage({ name }: { readonly name: string }) {
  const [key] = useQueryValue("key", SESSION_KEYS[0]);
  return <WhomPage kind={{ kind: "session", key }} value={name} />;
}

interface WhomPageProps {
  readonly kind: WhomKind;
  readonly value: string;
}

function WhomPage({ kind, value }: WhomPageProps) {
  const { api, page } = useAccountPaths();
  const time = useTimeRange("7d");
  const { range } = time;
  const isUser = kind.kind === "user";
  const entry = `${kind.key}=${value}`;
  const logs = useLogsAddress(null);
  const pathOf = (groupBy: string) =>
    withQuery(api("ai-gateway", "usage"), {
      only: `${groupOf(kind)}=${value}`,
      group_by: groupBy,
      start: new Date(bucketAt(range.from, range.bucketMs)).toISOString(),
      end: new Date(range.to).toISOString(),
    });
  const overTime = useResource(pathOf(range.step), async (signal) => ({
    rows: await read<Usage[]>(pathOf(range.step), signal),
    range,
  }));
  const models = useResource(pathOf("model"), (signal) => read<Usage[]>(pathOf("model"), signal));
  return (
    <>
      <PageHeader
        title={value}
        crumbs={[
          isUser ? { title: "Users", to: page("users") } : { title: "Sessions", to: page("sessions") },
        ]}
        actions={
          <div className="toolbar">
            <TimeRangePicker state={time} />
            <Link className="button" to={logs({ from: range.from, to: range.to, metadata: entry })}>
              Open in logs
            </Link>
          </div>
        }
      />
      <ResourceView of={overTime}>
        {(shown) => <OverTime {...shown} time={time} entry={entry} />}
      </ResourceView>
      <section className="section" aria-labelledby="whom-models">
        <h2 id="whom-models">Models</h2>
        <ResourceView of={models}>
          {(rows) =>
            rows.length === 0 ? (
              <p className="muted">No calls in this time.</p>
            ) : (
              <Table
                label="Models"
                rows={rows.toSorted((a, b) => b.cost - a.cost || b.calls - a.calls)}
                keyOf={({ model }) => model ?? ""}
                columns={[
                  {
                    title: "Model",
                    cell: ({ model = "" }) => (
                      <Link to={logs({ from: range.from, to: range.to, model, metadata: entry })}>
                        {model === "" ? "unknown" : model}
                      </Link>
                    ),
                  },
                  { title: "Calls", align: "end", cell: ({ calls }) => count(calls) },
                  { title: "Errors", align: "end", cell: ({ errors, calls }) => share(errors, calls) },
                  {
                    title: "Tokens",
                    align: "end",
                    isMinor: true,
                    cell: (row) => count(row.tokens_in + row.tokens_out),
                  },
                  { title: "Cost", amount: ({ cost }) => cost, formatOf: moneyOf },
                  { title: "p95", isMinor: true, amount: (row) => row.duration_p95, formatOf: durationOf },
                ]}
              />
            )
          }
        </ResourceView>
      </section>
      <Conversation entry={entry} range={range} isOldestFirst={!isUser} />
    </>
  );
}

interface OverTimeProps {
  readonly rows: readonly Usage[];
  readonly range: TimeRange;
  readonly time: TimeRangeState;
  readonly entry: string;
}

function OverTime({ rows, range, time, entry }: OverTimeProps) {
  const open = useOpenLogs(null);
  const total = totalOf(rows);
  const series = useMemo(() => {
    const totals = bucketTotals(rows, range);
    const values = (value: (one: NonNullable<(typeof totals)[number]>) => number) =>
      totals.map((one) => (one === null ? 0 : value(one)));
    return {
      calls: [
        { name: "Success", tone: "accent", values: values((one) => one.calls - one.errors) } as const,
        { name: "Errors", tone: "bad", values: values((one) => one.errors) } as const,
      ],
      cost: [{ name: "Cost", tone: "accent", values: values((one) => one.cost) } as const],
    };
  }, [rows, range]);
  const common = useMemo(
    () => ({
      kind: "bars" as const,
      times: timesOf(range),
      bucketMs: range.bucketMs,
      formatTime: formatPoint(range.step),
      formatTick: formatTick(range),
    }),
    [range],
  );
  const actions = {
    onSelect: time.setBetween,
    onOpen: (from: number, to: number) => open({ from, to, metadata: entry }),
  };
  return (
    <>
      <StatTiles label="Totals">
        <StatTile label="Calls" value={count(total.calls)} />
        <StatTile label="Error rate" value={share(total.errors, total.calls)} />
        <StatTile label="Cost" value={money(total.cost)} />
        <StatTile label="Tokens" value={count(total.tokens_in + total.tokens_out)} />
        <StatTile label="p95 latency" value={duration(total.duration_p95)} />
      </StatTiles>
      <ChartGroup>
        <div className="charts">
          <TimeChart
            title="Calls"
            unit={perBucket(range)}
            series={series.calls}
            isWhole
            format={count}
            {...common}
            {...actions}
          />
          <TimeChart
            title="Cost"
            unit={`USD ${perBucket(range)}`}
            series={series.cost}
            format={money}
            formatOf={moneyOf}
            {...common}
            {...actions}
          />
        </div>
      </ChartGroup>
    </>
  );
}
