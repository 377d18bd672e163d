/** One instance: its details, and a tab for each part of it. Only the missing values wait for the server, never the page. */
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { ConfirmDialog } from "../../components/confirm-dialog.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { ErrorNotice } from "../../components/error-notice.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { TabLinks } from "../../components/tab-links.tsx";
import { ApiError, read, request } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { navigate } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import { NotFoundPage } from "../not-found-page.tsx";
import type { InstanceDetail } from "./agent.ts";
import { BusyNotice } from "./busy-notice.tsx";
import { InstanceDetails } from "./instance-details.tsx";
import { InstanceTab, type InstanceTabName } from "./instance-tab.tsx";
import { LastFailure } from "./last-failure.tsx";
import { MoveDialog } from "./move-dialog.tsx";

const REFRESH_MS = 3000;

interface Tab {
  readonly name: InstanceTabName;
  readonly title: string;
  /** Shown behind the title. */
  readonly countOf?: (instance: InstanceDetail) => number;
}

const TABS: readonly Tab[] = [
  { name: "timeline", title: "Timeline" },
  { name: "state", title: "State" },
  { name: "queue", title: "Queue", countOf: ({ queue_count }) => queue_count },
  { name: "dead-letters", title: "Dead letters", countOf: ({ dead_letter_count }) => dead_letter_count },
  { name: "schedules", title: "Schedules", countOf: ({ schedule_count }) => schedule_count },
  { name: "connections", title: "Connections" },
  { name: "console", title: "Console" },
  { name: "sql", title: "SQL" },
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
  const { value, error } = instance;
  const isMissing = error instanceof ApiError && error.status === 404;
  const [dialog, setDialog] = useState<"destroy" | "move" | null>(null);
  const [movedTo, setMovedTo] = useState<string | null>(null);
  // Null without a cluster, and while no node has the instance.
  const node = value?.node ?? null;
  // While no node has the instance, only the possible nodes tell a cluster from a server that is alone.
  const targets = useResource(
    canEdit && value !== undefined && node === null ? `${path}/move` : null,
    (signal) => read<readonly unknown[]>(`${path}/move`, signal),
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
          canEdit &&
          value !== undefined &&
          !isMissing && (
            <>
              {isInCluster && <Button onClick={() => setDialog("move")}>Move to another node</Button>}
              <Button onClick={() => setDialog("destroy")}>Destroy instance</Button>
            </>
          )
        }
      />
      {isMissing ? (
        <EmptyState title="This instance does not exist">
          <p>
            {value === undefined ? "It was never created, or it was destroyed." : "It was destroyed."} The
            first event or connection for the entity creates it.
          </p>
          <p>
            <Link to={page("agents", agent)}>Instances of {agent}</Link>
          </p>
        </EmptyState>
      ) : (
        <div className="stack">
          {error !== null && <ErrorNotice error={error} onRetry={instance.reload} />}
          {movedTo !== null && (
            <div className="notice notice-good" role="status">
              <p>The instance was moved to {movedTo}.</p>
            </div>
          )}
          {value !== undefined && <BusyNotice instance={value} />}
          <InstanceDetails instance={value} isInCluster={isInCluster} />
          {value?.last_failure != null && <LastFailure failure={value.last_failure} />}
          <TabLinks
            label="Instance"
            tabs={TABS.map((one) => ({
              title: titleOf(one, value),
              to:
                one.name === "timeline" ? page("agents", agent, name) : page("agents", agent, name, one.name),
              isCurrent: one.name === current,
            }))}
          />
          <InstanceTab tab={current} agent={agent} name={name} path={path} instance={instance} />
        </div>
      )}
      {dialog === "move" && (
        <MoveDialog
          name={name}
          path={path}
          node={node}
          onMoved={(moved) => {
            setMovedTo(moved);
            instance.reload();
          }}
          onClose={() => setDialog(null)}
        />
      )}
      {dialog === "destroy" && (
        <ConfirmDialog
          title={`Destroy ${name}?`}
          verb="Destroy"
          onConfirm={destroy}
          onClose={() => setDialog(null)}
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

function titleOf({ title, countOf }: Tab, instance: InstanceDetail | undefined): string {
  return countOf === undefined || instance === undefined ? title : `${title} (${countOf(instance)})`;
}
