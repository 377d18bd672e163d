/** One instance: its details, and a tab for each part of it. */
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { DetailList } from "../../components/detail-list.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { TabLinks } from "../../components/tab-links.tsx";
import { Time } from "../../components/time.tsx";
import { read, request } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { NotFoundPage } from "../not-found-page.tsx";
import type { InstanceDetail } from "./agent.ts";
import { MoveDialog } from "./move-dialog.tsx";
import { InstanceTab, type InstanceTabName } from "./instance-tab.tsx";

const REFRESH_MS = 3000;

const TABS: readonly {
  readonly name: InstanceTabName;
  readonly title: (instance: InstanceDetail) => string;
}[] = [
  { name: "state", title: () => "State" },
  { name: "events", title: () => "Events" },
  { name: "queue", title: ({ queue_count }) => `Queue (${queue_count})` },
  {
    name: "dead-letters",
    title: ({ dead_letter_count }) => `Dead letters (${dead_letter_count})`,
  },
  { name: "schedules", title: ({ schedule_count }) => `Schedules (${schedule_count})` },
  { name: "connections", title: () => "Connections" },
  { name: "console", title: () => "Console" },
  { name: "sql", title: () => "SQL" },
];

interface InstancePageProps {
  readonly agent: string;
  readonly name: string;
  readonly tab: string;
}

export function InstancePage({ agent, name, tab }: InstancePageProps) {
  const { api, page } = useAccountPaths();
  const canEdit = useHasPermission("agents.edit");
  const path = api("agents", agent, "instances", name);
  const instance = useResource(path, (signal) => read<InstanceDetail>(path, signal), {
    refreshMs: REFRESH_MS,
  });
  const [isDestroying, setDestroying] = useState(false);
  const [isMoving, setMoving] = useState(false);
  const [movedTo, setMovedTo] = useState<string | null>(null);
  // Null without a cluster, and while no node has the instance.
  const node = instance.value?.node ?? null;
  // While no node has the instance, only the possible nodes tell a cluster from a server that is alone.
  const targets = useResource(canEdit && node === null ? `${path}/move` : null, (signal) =>
    read<readonly unknown[]>(`${path}/move`, signal),
  );
  const isInCluster = node !== null || (targets.value ?? []).length > 0;
  const current = TABS.find((one) => one.name === tab)?.name;
  if (current === undefined) return <NotFoundPage />;
  const destroy = async () => {
    await request(path, { method: "DELETE" });
    navigate(page("agents", agent));
  };
  return (
    <>
      <PageHeader
        title={name}
        crumbs={[
          { title: "Agents", to: page("agents") },
          { title: agent, to: page("agents", agent) },
        ]}
        actions={
          canEdit && (
            <>
              {isInCluster && <Button onClick={() => setMoving(true)}>Move to another node</Button>}
              <Button onClick={() => setDestroying(true)}>Destroy instance</Button>
            </>
          )
        }
      />
      <ResourceView of={instance}>
        {(value) => (
          <div className="stack">
            {movedTo !== null && (
              <div className="notice notice-good" role="status">
                <p>The instance was moved to {movedTo}.</p>
              </div>
            )}
            <section className="panel" aria-label="Details">
              <DetailList
                items={[
                  ...(value.object_name === null ? [] : [["Name", value.object_name] as const]),
                  ["Last active", <Time key="active" at={value.last_active_at} />],
                  ["Status", value.in_memory ? "active" : "idle"],
                  ...(isInCluster
                    ? [["Node", value.node ?? "none; the next event selects one"] as const]
                    : []),
                  ["Connections", value.connection_count],
                  ["Next run", <Time key="next-run" at={value.next_due_at} fallback="none" />],
                  ["Created", <Time key="created" at={value.created_at} />],
                ]}
              />
            </section>
            <TabLinks
              label="Instance"
              tabs={TABS.map((one) => ({
                title: one.title(value),
                to:
                  one.name === "state" ? page("agents", agent, name) : page("agents", agent, name, one.name),
                isCurrent: one.name === current,
              }))}
            />
            <InstanceTab tab={current} agent={agent} name={name} path={path} onChange={instance.reload} />
          </div>
        )}
      </ResourceView>
      {isMoving && (
        <MoveDialog
          name={name}
          path={path}
          node={node}
          onMoved={(moved) => {
            setMovedTo(moved);
            instance.reload();
          }}
          onClose={() => setMoving(false)}
        />
      )}
      {isDestroying && (
        <ConfirmDialog
          title={`Destroy ${name}?`}
          verb="Destroy"
          onConfirm={destroy}
          onClose={() => setDestroying(false)}
        >
          <p>
            The state, database, queue and schedules of the instance are deleted. This cannot be undone. The
            next event for the entity creates a new, empty instance.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
