/** The agents' instances: what each node has done since its start, the last take-overs, and what PostgreSQL keeps of all of them. */
import type { ClusterAgents, ClusterNode } from "@signalbox/client";
import { DetailList } from "../../components/detail-list.tsx";
import { Table } from "../../components/table.tsx";
import { bytes, count, duration } from "../../format/number.ts";
import { TakeOvers } from "./take-overs.tsx";

/** An old snapshot keeps PostgreSQL from removing deleted records. */
const OLD_SNAPSHOT_MS = 10 * 60_000;

interface InstancesPanelProps {
  readonly nodes: readonly ClusterNode[];
  /** Of the node that answers: the sizes are the same at every node. */
  readonly agents: ClusterAgents;
}

export function InstancesPanel({ nodes, agents }: InstancesPanelProps) {
  const reports = nodes.flatMap((node) =>
    node.agents === null ? [] : [{ ...node.agents, node: node.name, id: node.id }],
  );
  const lostRecords = reports.reduce((sum, { lost_records }) => sum + lost_records, 0);
  return (
    <section className="panel" aria-labelledby="instances-title">
      <h2 id="instances-title">Instances</h2>
      {lostRecords > 0 && (
        <div className="notice notice-bad" role="alert">
          <p>
            <strong>PostgreSQL has lost {count(lostRecords)} acknowledged records of instances.</strong>
          </p>
        </div>
      )}
      {agents.oldest_snapshot_ms > OLD_SNAPSHOT_MS && (
        <div className="notice notice-warn" role="status">
          <p>
            A session of PostgreSQL has held a snapshot for {duration(agents.oldest_snapshot_ms)}: deleted
            records cannot be removed. Look for a backup, a report or a forgotten transaction.
          </p>
        </div>
      )}
      <Table
        label="Instances by node, since the start of the node"
        rows={reports}
        keyOf={({ id }) => id}
        columns={[
          { title: "Node", cell: ({ node }) => <strong className="nowrap">{node}</strong> },
          { title: "Instances", cell: ({ held }) => count(held), align: "end" },
          { title: "Take-overs", cell: ({ take_overs }) => count(take_overs), align: "end" },
          { title: "Claims", cell: ({ claims }) => count(claims), align: "end", isMinor: true },
          { title: "Refused writes", cell: ({ refusals }) => count(refusals), align: "end" },
          { title: "Outcomes read", cell: (row) => count(row.unknown_outcomes), align: "end", isMinor: true },
          { title: "Oldest waiting write", cell: ({ lag_ms }) => duration(lag_ms), align: "end" },
        ]}
      />
      <DetailList
        items={[
          ["Records in PostgreSQL", `${count(agents.log_records)} (${bytes(agents.log_bytes)})`],
          ["Oldest snapshot", duration(agents.oldest_snapshot_ms)],
        ]}
      />
      <TakeOvers
        takeOvers={reports.flatMap(({ node, recent_take_overs }) =>
          recent_take_overs.map((takeOver) => ({ ...takeOver, to: node })),
        )}
      />
    </section>
  );
}
