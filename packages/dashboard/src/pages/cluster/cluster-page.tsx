import type { ClusterNode, ClusterStatus } from "@signalbox/client";
import { Badge, type Tone } from "../../components/badge.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { duration } from "../../format/number.ts";
import { client } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { InstancesPanel } from "./instances-panel.tsx";
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
            <Notices status={status} />
            <section className="panel" aria-labelledby="nodes-title">
              <h2 id="nodes-title">Nodes</h2>
              <NodeTable nodes={nodes} />
              {status.mode === "single" && <p className="muted small">{aloneText(status)}</p>}
            </section>
            {status.agents !== null && <InstancesPanel node={status.node} agents={status.agents} />}
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

function Notices({ status }: { readonly status: ClusterStatus }) {
  const { lost_commits: lost, problems } = status;
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
      {problems.length > 0 && (
        <div className="notice notice-warn" role="status">
          <p>
            <strong>Node {status.node} is not ready.</strong>
          </p>
          {problems.map((problem) => (
            <p key={problem}>{problem}</p>
          ))}
        </div>
      )}
    </>
  );
}

function NodeTable({ nodes }: { readonly nodes: readonly ClusterNode[] }) {
  return (
    <Table
      label="Nodes"
      rows={nodes}
      keyOf={({ id }) => id}
      columns={[
        { title: "Name", cell: ({ name }) => <strong>{name}</strong> },
        { title: "State", cell: ({ state }) => <Badge tone={STATES[state]}>{state}</Badge> },
        { title: "Link", cell: ({ link }) => <Badge tone={LINKS[link].tone}>{LINKS[link].text}</Badge> },
        { title: "Address", cell: ({ address }) => (address === null ? "–" : <code>{address}</code>) },
        { title: "Version", cell: ({ version }) => version, isMinor: true },
        { title: "Heartbeat", cell: ({ age_ms }) => `${duration(age_ms)} ago`, align: "end" },
        { title: "Joined", cell: ({ joined_at }) => <Time at={joined_at} />, align: "end", isMinor: true },
      ]}
    />
  );
}

const STATES: Readonly<Record<ClusterNode["state"], Tone>> = { up: "good", draining: "warn" };
const LINKS: Readonly<Record<ClusterNode["link"], { readonly tone: Tone; readonly text: string }>> = {
  self: { tone: "neutral", text: "this node" },
  up: { tone: "good", text: "connected" },
  down: { tone: "bad", text: "no link" },
};

function aloneText({ database }: ClusterStatus): string {
  return database === "sqlite"
    ? "This server runs alone, with SQLite in its data folder."
    : "This server uses PostgreSQL alone. With SIGNALBOX_CLUSTER_SECRET, several nodes share it.";
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
