import type { ReactNode } from "react";
import { DetailList } from "../../components/detail-list.tsx";
import { Time } from "../../components/time.tsx";
import type { InstanceDetail } from "./agent.ts";

interface InstanceDetailsProps {
  /** Undefined while it is being read: the names are shown at once. */
  readonly instance: InstanceDetail | undefined;
  readonly isInCluster: boolean;
}

export function InstanceDetails({ instance, isInCluster }: InstanceDetailsProps) {
  const show = (value: (instance: InstanceDetail) => ReactNode): ReactNode =>
    instance === undefined ? <span className="muted">…</span> : value(instance);
  const objectName = instance?.object_name ?? null;
  return (
    <section className="panel" aria-label="Details" aria-busy={instance === undefined}>
      <DetailList
        items={[
          ...(objectName === null ? [] : [["Name", objectName] as const]),
          ["Status", show(statusOf)],
          ["Last active", show(({ last_active_at }) => <Time at={last_active_at} />)],
          ...(isInCluster
            ? [["Node", show(({ node }) => node ?? "none; the next event selects one")] as const]
            : []),
          ["Connections", show(({ connection_count }) => connection_count)],
          ["Next run", show(({ next_due_at }) => <Time at={next_due_at} fallback="none" isDue />)],
          ["Created", show(({ created_at }) => <Time at={created_at} />)],
        ]}
      />
    </section>
  );
}

function statusOf({ busy_since: busySince, in_memory: isActive }: InstanceDetail): string {
  if (busySince != null) return "busy";
  return isActive ? "active" : "idle";
}
