/** The health of everything that the session may see: one line that says whether anything is wrong, the figures, and the lists behind them. */
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TimeRangePicker } from "../../components/time-range/time-range-picker.tsx";
import type { TimeRange } from "../../components/time-range/time-range.ts";
import { useTimeRange } from "../../components/time-range/use-time-range.ts";
import { client } from "../../http/api.ts";
import { type Resource, useResource } from "../../http/use-resource.ts";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import { findingsOf } from "./findings.ts";
import { FirstSteps } from "./first-steps.tsx";
import {
  AlertsPanel,
  type Cluster,
  DeliveriesPanel,
  InstancesPanel,
  LimitsPanel,
  NodesPanel,
} from "./problem-panels.tsx";
import { type Access, useAccess } from "./use-access.ts";
import { useFirstSteps } from "./use-first-steps.ts";
import { useLimits } from "./use-limits.ts";
import { useUsage } from "./use-usage.ts";
import { LatestPanel } from "./latest-panel.tsx";
import { TopPanels } from "./top-panels.tsx";
import { UsagePanel } from "./usage-panel.tsx";
import { Verdict } from "./verdict.tsx";

const REFRESH_MS = 5000;
const MAX_INSTANCES = 5;

export function OverviewPage() {
  const { page } = useAccountPaths();
  const access = useAccess();
  const time = useTimeRange();
  const { range } = time;
  const usage = useUsage(access, range);
  const limits = useLimits(access);
  const { alerts, problems, deliveries, cluster } = useProblems(access, range);
  const steps = useFirstSteps(access);
  const parts: readonly (readonly [name: string, isAllowed: boolean, resource: Resource<unknown>])[] = [
    ["calls", access.usage, usage],
    ["limits", access.usage, limits],
    ["alerts", access.account, alerts],
    ["instances", access.agents, problems],
    ["deliveries", access.webhooks, deliveries],
    ["nodes", access.cluster, cluster],
  ];
  const read = parts.filter(([, isAllowed]) => isAllowed);
  const isKnown = read.every(([, , { value, error }]) => value !== undefined || error !== null);
  const findings = findingsOf({
    usage: usage.value,
    limits: limits.value,
    alerts: alerts.value,
    problems: problems.value?.totals,
    deliveries: deliveries.value,
    cluster: cluster.value,
  });
  const isNew = steps.value?.isNew === true;
  return (
    <>
      <PageHeader
        title="Overview"
        actions={
          <div className="toolbar">
            <TimeRangePicker state={time} />
          </div>
        }
      />
      {read.length > 0 && (
        <Verdict
          findings={isKnown ? findings : undefined}
          unknown={read.filter(([, , { error }]) => error !== null).map(([name]) => name)}
          watched={read.map(([name]) => name)}
        />
      )}
      {isNew && steps.value !== undefined && (
        <FirstSteps
          access={access}
          done={steps.value.done}
          onChange={() => {
            steps.reload();
            usage.reload();
          }}
        />
      )}
      {access.usage && (
        <ResourceView of={usage}>
          {(value) => <UsagePanel usage={value} gatewayId={access.gatewayId} time={time} />}
        </ResourceView>
      )}
      <div className="overview-panels">
        {access.usage && usage.value?.total !== null && (
          <TopPanels usage={usage} range={range} access={access} />
        )}
        {(access.usage || access.webhooks) && <LatestPanel access={access} />}
        {access.agents && <InstancesPanel problems={problems} />}
        {access.webhooks && <DeliveriesPanel deliveries={deliveries} />}
        {access.account && <AlertsPanel alerts={alerts} />}
        {access.usage && (
          <LimitsPanel
            limits={limits}
            to={access.gatewayId === null ? page("limits") : page("gateways", access.gatewayId, "limits")}
          />
        )}
        {access.cluster && <NodesPanel cluster={cluster} />}
      </div>
      {read.length === 0 && <p className="muted">This token may not read any data of the account.</p>}
    </>
  );
}

function useProblems(access: Access, { from, to, name }: TimeRange) {
  const account = useAccount();
  const seconds = Math.max(1, Math.round((Date.now() - from) / 1000));
  const options = { refreshMs: REFRESH_MS };
  return {
    alerts: useResource(
      access.account ? `alerts ${account.id}` : null,
      (signal) => account.alerts.list({ signal }),
      options,
    ),
    problems: useResource(
      access.agents ? `problems ${account.id} ${name} ${from}` : null,
      (signal) => account.agents.problems({ within: seconds, limit: MAX_INSTANCES }, { signal }),
      { ...options, identity: `problems ${account.id} ${name}` },
    ),
    deliveries: useResource(
      access.webhooks ? `deliveries ${account.id} ${name} ${from}` : null,
      (signal) =>
        account.webhooks.summary(
          { since: new Date(from).toISOString(), until: new Date(to).toISOString() },
          { signal },
        ),
      { ...options, identity: `deliveries ${account.id} ${name}` },
    ),
    cluster: useResource<Cluster>(
      access.cluster ? "cluster" : null,
      async (signal) => {
        const [status, nodes] = await Promise.all([
          client.cluster.status({ signal }),
          client.cluster.nodes({ signal }),
        ]);
        return { status, nodes };
      },
      options,
    ),
  };
}
