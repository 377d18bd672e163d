/** How the providers do that calls went to: calls, errors and latency of a time range, and the circuits that are open now. */
import type { Circuit } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { Sparkline } from "../../components/chart/sparkline.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { TimeRangePicker } from "../../components/time-range/time-range-picker.tsx";
import { bucketAt, timesOf, type TimeRange } from "../../components/time-range/time-range.ts";
import { useTimeRange } from "../../components/time-range/use-time-range.ts";
import { count, durationOf, moneyOf, share } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccount, useAccountPaths, useScope } from "../../session/session.ts";
import { bucketTotals } from "../gateways/analytics/to-series.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import { totalOf, type UsageTotal } from "../gateways/analytics/usage-total.ts";
import { useLogsAddress } from "../gateways/logs/use-open-logs.ts";

const REFRESH_MS = 15_000;
/** Circuits belong to a gateway, and each is asked for by itself. */
const MAX_GATEWAYS = 5;
/** Of a hundred calls one fails now and then; above it somebody should look. */
const NOTABLE_ERRORS = 0.01;

interface Health {
  readonly provider: string;
  readonly total: UsageTotal;
  readonly calls: readonly (number | null)[];
}

export function ProviderHealth() {
  const { session } = useScope();
  const { api } = useAccountPaths();
  const timeRange = useTimeRange();
  const { range } = timeRange;
  const path = withQuery(api("ai-gateway", "usage"), {
    gateway_id: session.gateway_id ?? "",
    start: new Date(bucketAt(range.from, range.bucketMs)).toISOString(),
    end: new Date(range.to).toISOString(),
    group_by: `${range.step},provider`,
  });
  const usage = useResource(path, async (signal) => healthOf(await read<Usage[]>(path, signal), range), {
    refreshMs: REFRESH_MS,
    identity: `provider health ${range.name}`,
  });
  const circuits = useOpenCircuits();
  return (
    <section className="section" aria-labelledby="health-title">
      <div className="row spread">
        <h2 id="health-title">Health</h2>
        <span className="filters">
          <TimeRangePicker state={timeRange} />
        </span>
      </div>
      <ResourceView of={usage}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={`No calls, ${range.title}`}>
              <p>Every provider that calls go to appears here, with its errors and latency.</p>
            </EmptyState>
          ) : (
            <HealthTable rows={rows} circuits={circuits} range={range} />
          )
        }
      </ResourceView>
    </section>
  );
}

interface HealthTableProps {
  readonly rows: readonly Health[];
  /** Undefined while they are being read. */
  readonly circuits: readonly Circuit[] | undefined;
  readonly range: TimeRange;
}

function HealthTable({ rows, circuits, range }: HealthTableProps) {
  const addressOf = useLogsAddress(null);
  const { from, to } = range;
  return (
    <Table
      label="Health of providers"
      rows={rows}
      keyOf={({ provider }) => provider}
      columns={[
        {
          title: "Provider",
          cell: ({ provider }) => (
            <Link to={addressOf({ from, to, provider })} className="nowrap">
              {provider}
            </Link>
          ),
        },
        {
          title: "Health",
          cell: ({ provider, total }) => (
            <HealthBadge
              total={total}
              open={circuits?.filter((one) => one.provider === provider && one.state !== "closed")}
            />
          ),
        },
        {
          title: "Over time",
          isMinor: true,
          cell: ({ calls }) => (
            <span className="cell-spark">
              <Sparkline values={calls} />
            </span>
          ),
        },
        { title: "Calls", align: "end", cell: ({ total }) => count(total.calls) },
        {
          title: "Errors",
          align: "end",
          cell: ({ provider, total }) =>
            total.errors === 0 ? (
              <span className="muted">0</span>
            ) : (
              <Link to={addressOf({ from, to, provider, outcome: "error" })}>
                {count(total.errors)} ({share(total.errors, total.calls)})
              </Link>
            ),
        },
        {
          title: "p95",
          align: "end",
          amount: ({ total }) => total.duration_p95,
          formatOf: durationOf,
        },
        { title: "Cost", align: "end", amount: ({ total }) => total.cost, formatOf: moneyOf },
      ]}
    />
  );
}

function HealthBadge({
  total,
  open = [],
}: {
  readonly total: UsageTotal;
  readonly open: readonly Circuit[] | undefined;
}) {
  if (open.length > 0)
    return (
      <span className="badges">
        {open.map(({ model, key_id: key, state }) => (
          <Badge key={`${model} ${key ?? ""}`} tone={state === "open" ? "bad" : "warn"}>
            {state === "open" ? "skipped" : "probed"}: {model}
          </Badge>
        ))}
      </span>
    );
  const errors = total.calls === 0 ? 0 : total.errors / total.calls;
  if (errors === 1) return <Badge tone="bad">all calls fail</Badge>;
  if (errors >= NOTABLE_ERRORS) return <Badge tone="warn">errors</Badge>;
  return <span className="muted">ok</span>;
}

/** By calls, descending. */
function healthOf(rows: readonly Usage[], range: TimeRange): Health[] {
  const length = timesOf(range).length;
  return [...Map.groupBy(rows, ({ provider }) => provider ?? "")]
    .filter(([provider]) => provider !== "")
    .map(([provider, own]) => ({
      provider,
      total: totalOf(own),
      calls: bucketTotals(own, range)
        .slice(0, length)
        .map((total) => total?.calls ?? 0),
    }))
    .toSorted((a, b) => b.total.calls - a.total.calls);
}

/** Undefined while they are being read, and if they cannot be read: health without them is still of use. */
function useOpenCircuits(): readonly Circuit[] | undefined {
  const account = useAccount();
  const { session } = useScope();
  const circuits = useResource(
    `circuits of providers ${account.id}`,
    async (signal) => {
      const ids =
        session.gateway_id === null
          ? (await account.gateways.list({ per_page: MAX_GATEWAYS }, { signal }).page()).items.map(
              ({ id }) => id,
            )
          : [session.gateway_id];
      return (await Promise.all(ids.map((id) => account.routes(id).circuits({ signal })))).flat();
    },
    { refreshMs: REFRESH_MS },
  );
  return circuits.value;
}
