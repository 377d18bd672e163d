import type { ClusterNode, ClusterStatus } from "@signalbox/client";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/number.ts";
import { client } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { InstancesPanel } from "./instances-panel.tsx";
import { NodesPanel } from "./nodes-panel.tsx";
import { SettingsPanel } from "./settings-panel.tsx";

/** Heartbeats arrive twice a second. */
const REFRESH_MS = 2000;

interface Cluster {
  readonly status: ClusterStatus;
  readonly nodes: readonly ClusterNode[];
}

export function ClusterPage() {
  const cluster = useResource<Cluster>(
    "cluster",
    async (signal) => {
      const [status, nodes] = await Promise.all([
        client.cluster.status({ signal }),
        client.cluster.nodes({ signal }),
      ]);
      return { status, nodes };
    },
    { refreshMs: REFRESH_MS },
  );
  return (
    <>
      <PageHeader title="Cluster">
        The nodes that share one database, and the state of that database.
      </PageHeader>
      <ResourceView of={cluster}>
        {({ status, nodes }) => (
          <>
            <Notices status={status} nodes={nodes} />
            <NodesPanel status={status} nodes={nodes} />
            {status.agents !== null && <InstancesPanel nodes={nodes} agents={status.agents} />}
            <section className="panel" aria-labelledby="database-title">
              <h2 id="database-title">Database</h2>
              <DetailList items={detailsOf(status)} />
            </section>
            {status.settings.length > 0 && <SettingsPanel settings={status.settings} />}
          </>
        )}
      </ResourceView>
    </>
  );
}

function Notices({ status, nodes }: Cluster) {
  const { lost_commits: lost } = status;
  return (
    <>
      {lost.count > 0 && (
        <div className="notice notice-bad" role="alert">
          <p>
            <strong>PostgreSQL has lost commits that it had acknowledged.</strong>
          </p>
          <p>
            At least {lost.writes} writes of this node are gone (<Time at={lost.last_at} />
            ). A standby without them became the primary, a backup was restored, or the server crashed without
            fsync. Compare the old server with the new one before you delete it.
          </p>
        </div>
      )}
      {byProblem(nodes).map(([problem, names]) => (
        <div key={problem} className="notice notice-warn" role="status">
          <p>
            <strong>Not ready: {names.join(", ")}.</strong>
          </p>
          <p>{problem}</p>
        </div>
      ))}
    </>
  );
}

/** Why nodes are not ready, and which. A node that drains says so in the list. */
function byProblem(nodes: readonly ClusterNode[]): (readonly [problem: string, names: readonly string[]])[] {
  const up = nodes.filter(({ state }) => state === "up");
  const all = new Set(up.flatMap(({ problems }) => problems ?? []));
  return [...all].map((problem) => [
    problem,
    up.filter(({ problems }) => problems?.includes(problem) === true).map(({ name }) => name),
  ]);
}

function detailsOf(status: ClusterStatus): [string, string][] {
  const details: [string, string][] = [["Engine", status.database === "sqlite" ? "SQLite" : "PostgreSQL"]];
  if (status.heartbeat_age_ms === null) return details;
  details.push(
    ["Last answer", `${duration(status.heartbeat_age_ms)} ago`],
    ["Answers without it for", duration(status.max_stale_ms)],
    ["Clock offset", duration(status.clock_offset_ms)],
    ["Lost commits", status.lost_commits.count === 0 ? "none noticed" : String(status.lost_commits.writes)],
  );
  return details;
}
