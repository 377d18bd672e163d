/** The agents' instances of the node that answers, and what PostgreSQL keeps of all of them. */
import type { ClusterAgents } from "@signalbox/client";
import { DetailList } from "../../components/detail-list.tsx";
import { bytes, count, duration } from "../../format/number.ts";

/** An old snapshot keeps PostgreSQL from removing deleted records. */
const OLD_SNAPSHOT_MS = 10 * 60_000;

interface InstancesPanelProps {
  readonly node: string;
  readonly agents: ClusterAgents;
}

export function InstancesPanel({ node, agents }: InstancesPanelProps) {
  return (
    <section className="panel" aria-labelledby="instances-title">
      <h2 id="instances-title">Instances of {node}</h2>
      {agents.lost_records > 0 && (
        <div className="notice notice-bad" role="alert">
          <p>
            <strong>
              PostgreSQL has lost {count(agents.lost_records)} acknowledged records of instances.
            </strong>
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
      <DetailList
        items={[
          ["Owned", count(agents.held)],
          ["Take-overs", count(agents.take_overs)],
          ["Claims", count(agents.claims)],
          ["Refused writes", count(agents.refusals)],
          ["Outcomes that had to be read", count(agents.unknown_outcomes)],
          ["Oldest waiting write", duration(agents.lag_ms)],
          ["Records in PostgreSQL", `${count(agents.log_records)} (${bytes(agents.log_bytes)})`],
          ["Oldest snapshot", duration(agents.oldest_snapshot_ms)],
        ]}
      />
    </section>
  );
}
