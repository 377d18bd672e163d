/** What is most expensive, slowest and failing in the time range. */
import type { FoundCall } from "@signalbox/client";
import { useState } from "react";
import { Time } from "../../components/time.tsx";
import type { TimeRange } from "../../components/time-range/time-range.ts";
import { ResourceView } from "../../components/resource-view.tsx";
import { Tabs } from "../../components/tabs.tsx";
import { count, durationOf, moneyOf } from "../../format/number.ts";
import { read, withQuery } from "../../http/api.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { totalOf } from "../gateways/analytics/usage-total.ts";
import type { Usage } from "../gateways/analytics/usage.ts";
import { useLogsAddress } from "../gateways/logs/use-open-logs.ts";
import { groupErrors } from "./group-errors.ts";
import { NothingHere, Panel, PanelRow } from "./panel.tsx";
import type { Access } from "./use-access.ts";
import type { RangeUsage } from "./use-usage.ts";

const MAX_ROWS = 5;
const REFRESH_MS = 30_000;
/** Failed calls that are grouped: the newest ones. */
const MAX_FAILED = 100;
const NO_ERRORS = groupErrors([]);

interface TopPanelsProps {
  readonly usage: Resource<RangeUsage>;
  readonly range: TimeRange;
  readonly access: Access;
}

export function TopPanels(props: TopPanelsProps) {
  return (
    <>
      <CostPanel {...props} />
      <SlowPanel {...props} />
      <ErrorsPanel {...props} />
    </>
  );
}

const BY = [
  { name: "model", title: "Models" },
  { name: "user", title: "Users" },
  { name: "token", title: "Tokens" },
] as const;

interface Named {
  readonly name: string;
  readonly to: string;
  readonly cost: number;
  readonly calls: number;
}

function CostPanel({ usage, range, access }: TopPanelsProps) {
  const { page } = useAccountPaths();
  const [by, setBy] = useState<(typeof BY)[number]["name"]>("model");
  const whom = useWhom(by === "model" ? null : by, range, access);
  const logs = useLogsAddress(access.gatewayId);
  const models: Resource<readonly Named[]> = {
    ...usage,
    value:
      usage.value === undefined
        ? undefined
        : modelTotals(usage.value.rows).map(({ name, total }) => ({
            name,
            to: logs({ from: range.from, to: range.to, model: name }),
            cost: total.cost,
            calls: total.calls,
          })),
  };
  return (
    <Panel
      id="top-cost"
      title="Top by cost"
      to={access.gatewayId === null ? page("usage") : page("gateways", access.gatewayId, "analytics")}
      of={usage}
    >
      {() => (
        <Tabs label="Top by" tabs={BY} current={by} onChange={setBy}>
          <ResourceView of={by === "model" ? models : whom}>
            {(rows) => (
              <CostRows
                rows={rows}
                nothing={by === "user" ? "No calls name a user in their metadata." : "No calls in this time."}
              />
            )}
          </ResourceView>
        </Tabs>
      )}
    </Panel>
  );
}

function CostRows({ rows, nothing }: { readonly rows: readonly Named[]; readonly nothing: string }) {
  const top = rows.toSorted((a, b) => b.cost - a.cost || b.calls - a.calls).slice(0, MAX_ROWS);
  const text = moneyOf(top.map(({ cost }) => cost));
  const most = top[0]?.cost ?? 0;
  if (top.length === 0) return <NothingHere>{nothing}</NothingHere>;
  return (
    <ul className="panel-rows">
      {top.map(({ name, to, cost, calls }) => (
        <BarRow
          key={name}
          name={name}
          to={to}
          share={most === 0 ? 0 : cost / most}
          note={`${count(calls)} calls`}
          value={text(cost)}
        />
      ))}
    </ul>
  );
}

interface BarRowProps {
  readonly name: string;
  readonly to: string;
  /** Of the largest value of the list. */
  readonly share: number;
  readonly note: string;
  readonly value: string;
}

function BarRow({ name, to, share, note, value }: BarRowProps) {
  return (
    <li className="bar-row">
      <span className="bar-row-bar" style={{ width: `${100 * share}%` }} aria-hidden="true" />
      <Link to={to}>{name}</Link>
      <span className="muted small">{note}</span>
      <span className="bar-row-value">{value}</span>
    </li>
  );
}

function useWhom(
  by: "user" | "token" | null,
  { from, to, name: rangeName }: TimeRange,
  access: Access,
): Resource<readonly Named[]> {
  const { api, page } = useAccountPaths();
  const path = withQuery(api("ai-gateway", "usage"), {
    group_by: by ?? "",
    gateway_id: access.gatewayId ?? "",
    start: new Date(from).toISOString(),
    end: new Date(to).toISOString(),
  });
  return useResource(
    by === null ? null : path,
    async (signal) =>
      (await read<Usage[]>(path, signal)).flatMap(
        ({ user, token_id: id, token_name, other, cost, calls }) => {
          const name = by === "user" ? user : (token_name ?? id);
          if (other === true || name == null) return [];
          const address =
            by === "user"
              ? page("users", name)
              : access.tokens && id != null
                ? page("tokens", id)
                : page("usage");
          return [{ name, to: address, cost, calls }];
        },
      ),
    { refreshMs: REFRESH_MS, identity: `${by} ${rangeName}` },
  );
}

function modelTotals(rows: readonly Usage[]) {
  return [...Map.groupBy(rows, ({ model = "" }) => (model === "" ? "unknown" : model))].map(
    ([name, own]) => ({
      name,
      total: totalOf(own),
    }),
  );
}

function SlowPanel({ usage, range, access }: TopPanelsProps) {
  const { page } = useAccountPaths();
  const logs = useLogsAddress(access.gatewayId);
  return (
    <Panel
      id="top-slow"
      title="Slowest models"
      to={`${access.gatewayId === null ? page() : page("gateways", access.gatewayId, "analytics")}?show=p95`}
      of={usage}
    >
      {({ rows }) => {
        const slow = modelTotals(rows)
          .filter(({ total }) => total.duration_p95 !== null)
          .sort((a, b) => (b.total.duration_p95 ?? 0) - (a.total.duration_p95 ?? 0))
          .slice(0, MAX_ROWS);
        const text = durationOf(slow.map(({ total }) => total.duration_p95));
        const most = slow[0]?.total.duration_p95 ?? 0;
        if (slow.length === 0) return <NothingHere>No calls in this time.</NothingHere>;
        return (
          <ul className="panel-rows">
            {slow.map(({ name, total }) => (
              <BarRow
                key={name}
                name={name}
                to={logs({ from: range.from, to: range.to, model: name })}
                share={most === 0 ? 0 : (total.duration_p95 ?? 0) / most}
                note={`median ${text(total.duration_p50)}`}
                value={text(total.duration_p95)}
              />
            ))}
          </ul>
        );
      }}
    </Panel>
  );
}

/** Failed calls are searched for, so they are read only when the sums say that there are others than before. */
function ErrorsPanel({ usage, range, access }: TopPanelsProps) {
  const { api } = useAccountPaths();
  const logs = useLogsAddress(access.gatewayId);
  const errors = usage.value?.total?.errors ?? 0;
  const path = withQuery(api("ai-gateway", "logs"), {
    gateway_id: access.gatewayId ?? "",
    success: "false",
    start_date: new Date(range.from).toISOString(),
    limit: Math.min(MAX_FAILED, Math.max(1, errors)),
  });
  const newest = useResource(
    errors === 0 ? null : `${access.gatewayId ?? ""} ${range.name} ${range.step} ${errors}`,
    async (signal) => groupErrors(await read<FoundCall[]>(path, signal)),
    { identity: `errors ${access.gatewayId ?? ""} ${range.name}` },
  );
  const failed = errors === 0 && usage.value !== undefined ? { ...newest, value: NO_ERRORS } : newest;
  return (
    <Panel
      id="top-errors"
      title="Errors"
      to={logs({ from: range.from, to: range.to, outcome: "error" })}
      of={failed}
    >
      {({ groups, calls }) =>
        groups.length === 0 ? (
          <NothingHere>No call failed in this time.</NothingHere>
        ) : (
          <>
            <ul className="panel-rows">
              {groups.slice(0, MAX_ROWS).map(({ message, count: n, last, model, provider }) => (
                <PanelRow
                  key={`${message} ${provider} ${model}`}
                  note={`${provider}/${model}`}
                  end={
                    <>
                      <strong>{count(n)} ×</strong>
                      <Time at={last} />
                    </>
                  }
                >
                  <Link
                    className="error-text"
                    to={logs({ from: range.from, to: range.to, outcome: "error", provider, model })}
                  >
                    {message}
                  </Link>
                </PanelRow>
              ))}
            </ul>
            {calls === MAX_FAILED && <NothingHere>Of the newest {MAX_FAILED} failed calls.</NothingHere>}
          </>
        )
      }
    </Panel>
  );
}
