/** The parts of the overview that list what needs attention. */
import type { Alert, ClusterNode, ClusterStatus, DeliverySummary, Problems } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { Time } from "../../components/time.tsx";
import { count, share } from "../../format/number.ts";
import type { Resource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import { METRIC_TITLES, showAmount } from "../alerts/alert-metrics.ts";
import { BudgetMeter } from "../limits/budget-meter.tsx";
import { windowText } from "../limits/period.ts";
import { ProblemBadges } from "../problems/problem-badges.tsx";
import { DeliveryCounts } from "../webhooks/delivery-counts.tsx";
import { NothingHere, Panel, PanelRow } from "./panel.tsx";
import type { NearLimit } from "./use-limits.ts";

const MAX_ROWS = 5;

export function AlertsPanel({ alerts }: { readonly alerts: Resource<readonly Alert[]> }) {
  const { page } = useAccountPaths();
  return (
    <Panel id="alerts" title="Alerts" to={page("alerts")} of={alerts}>
      {(all) => {
        const firing = all.filter(({ enabled, status }) => enabled && status === "firing");
        if (firing.length === 0)
          return (
            <NothingHere>
              {all.length === 0
                ? "No alerts are set up."
                : all.length === 1
                  ? "One alert is set up; it is not firing."
                  : `None of ${count(all.length)} alerts is firing.`}
            </NothingHere>
          );
        return (
          <ul className="panel-rows">
            {firing.slice(0, MAX_ROWS).map((alert) => (
              <PanelRow
                key={alert.id}
                end={<Time at={alert.since} />}
                note={`${METRIC_TITLES[alert.metric]} ${
                  alert.value === null ? "–" : showAmount(alert.metric, alert.value)
                }, fires at ${showAmount(alert.metric, alert.threshold)}`}
              >
                <Badge tone="bad">firing</Badge> {alert.name}
              </PanelRow>
            ))}
          </ul>
        );
      }}
    </Panel>
  );
}

export function InstancesPanel({ problems }: { readonly problems: Resource<Problems> }) {
  const { page } = useAccountPaths();
  return (
    <Panel id="instances" title="Instances with problems" to={page("problems")} of={problems}>
      {({ instances }) =>
        instances.length === 0 ? (
          <NothingHere>No dead letters, no stuck instance, no recent error.</NothingHere>
        ) : (
          <ul className="panel-rows">
            {instances.slice(0, MAX_ROWS).map((instance) => (
              <PanelRow
                key={`${instance.agent}/${instance.name}`}
                note={instance.last_error}
                end={<ProblemBadges instance={instance} />}
              >
                <Link to={page("agents", instance.agent, instance.name)}>
                  {instance.object_name ?? instance.name}
                </Link>{" "}
                <span className="muted small">{instance.agent}</span>
              </PanelRow>
            ))}
          </ul>
        )
      }
    </Panel>
  );
}

export function DeliveriesPanel({ deliveries }: { readonly deliveries: Resource<DeliverySummary> }) {
  const { page } = useAccountPaths();
  return (
    <Panel id="deliveries" title="Webhook deliveries" to={page("webhooks", "deliveries")} of={deliveries}>
      {(summary) =>
        summary.sources.length === 0 ? (
          <NothingHere>No deliveries in this time.</NothingHere>
        ) : (
          <ul className="panel-rows">
            {summary.sources
              .toSorted((a, b) => b.failing - a.failing || b.rejected - a.rejected || b.accepted - a.accepted)
              .slice(0, MAX_ROWS)
              .map((source) => (
                <PanelRow
                  key={source.source}
                  note={source.failing > 0 ? source.last_error : undefined}
                  end={<DeliveryCounts summary={summary} source={source.source} />}
                >
                  <Link to={page("webhooks", "sources", source.source)}>{source.source}</Link>
                </PanelRow>
              ))}
          </ul>
        )
      }
    </Panel>
  );
}

export function LimitsPanel({
  limits,
  to,
}: {
  readonly limits: Resource<readonly NearLimit[]>;
  readonly to: string;
}) {
  return (
    <Panel id="limits" title="Limits" to={to} of={limits}>
      {(near) =>
        near.length === 0 ? (
          <NothingHere>No limit is near its end.</NothingHere>
        ) : (
          <ul className="panel-rows">
            {near.slice(0, MAX_ROWS).map(({ owner, to: ownerPage, budget, usedShare }) => (
              <PanelRow
                key={`${owner} ${budget.rule} ${budget.partition ?? ""}`}
                note={
                  <>
                    {budget.rule}, {windowText(budget.window)}
                    {budget.reset_at !== null && (
                      <>
                        ; resets <Time at={budget.reset_at} isDue />
                      </>
                    )}
                  </>
                }
                end={
                  <>
                    <Badge tone={usedShare >= 1 ? "bad" : "warn"}>{share(usedShare, 1)} used</Badge>
                    <BudgetMeter budget={budget} />
                  </>
                }
              >
                <Link to={ownerPage}>{owner}</Link>
              </PanelRow>
            ))}
          </ul>
        )
      }
    </Panel>
  );
}

export interface Cluster {
  readonly status: ClusterStatus;
  readonly nodes: readonly ClusterNode[];
}

export function NodesPanel({ cluster }: { readonly cluster: Resource<Cluster> }) {
  const { page } = useAccountPaths();
  return (
    <Panel id="nodes" title="Nodes" to={page("cluster")} of={cluster}>
      {({ status, nodes }) => (
        <ul className="panel-rows">
          {nodes.slice(0, MAX_ROWS).map((node) => (
            <PanelRow key={node.id} note={node.problems?.join("; ")} end={<NodeState node={node} />}>
              {node.name} <span className="muted small">{node.version}</span>
            </PanelRow>
          ))}
          {status.lost_nodes.map((node) => (
            <PanelRow
              key={node.id}
              note={
                <>
                  Last seen <Time at={node.last_seen_at} />
                </>
              }
              end={<Badge tone="bad">dead</Badge>}
            >
              {node.name}
            </PanelRow>
          ))}
        </ul>
      )}
    </Panel>
  );
}

function NodeState({ node: { state, problems } }: { readonly node: ClusterNode }) {
  if (state === "draining") return <Badge tone="warn">draining</Badge>;
  if (problems === null) return <Badge tone="warn">no answer</Badge>;
  return problems.length === 0 ? <Badge tone="good">up</Badge> : <Badge tone="bad">not ready</Badge>;
}
