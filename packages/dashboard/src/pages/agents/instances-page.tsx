import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths, useHasPermission } from "../../session/session.ts";
import type { Instance } from "./agent.ts";
import { InstanceTable } from "./instance-table.tsx";
import { ProblemFilter } from "./problem-filter.tsx";
import { ReplayAgentDialog } from "./replay-agent-dialog.tsx";

const REFRESH_MS = 5000;

export function InstancesPage({ agent }: { readonly agent: string }) {
  const { api, page } = useAccountPaths();
  const canEdit = useHasPermission("agents.edit");
  const [search, setSearch] = useQueryValue("search");
  const [problem, setProblem] = useQueryValue("problem");
  const [order, setOrder] = useQueryValue("order", "name");
  const [isReplaying, setReplaying] = useState(false);
  const instances = useList<Instance>(
    withQuery(api("agents", agent, "instances"), { search, problem, order }),
    { refreshMs: REFRESH_MS },
  );
  const isFiltered = search !== "" || problem !== "";
  return (
    <>
      <PageHeader
        title={agent}
        crumbs={[{ title: "Agents", to: page("agents") }]}
        actions={canEdit && <Button onClick={() => setReplaying(true)}>Replay dead letters</Button>}
      >
        Each entity has its own instance, created by its first event or connection.
      </PageHeader>
      <div className="filters">
        <Field label="Search">
          <input
            type="search"
            value={search}
            placeholder="Instance name"
            onChange={({ target }) => setSearch(target.value)}
          />
        </Field>
        <ProblemFilter value={problem} onChange={setProblem} none="All instances" />
        <Field label="Sort by">
          <select value={order} onChange={({ target }) => setOrder(target.value)}>
            <option value="name">Name</option>
            <option value="last_active">Last active</option>
            <option value="dead_letters">Dead letters</option>
            <option value="queued">Queued</option>
          </select>
        </Field>
      </div>
      <ResourceView of={instances}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={isFiltered ? "No matching instances" : "No instances yet"}>
              <p>
                {isFiltered ? (
                  "No instance has this problem or a name with this text. Change or clear the filters."
                ) : (
                  <>
                    An instance is created when the first event for its entity arrives.{" "}
                    <Link to={page("webhooks")}>Send a test event</Link> from a webhook source to create one.
                  </>
                )}
              </p>
            </EmptyState>
          ) : (
            <InstanceTable rows={rows} />
          )
        }
      </ResourceView>
      {instances.hasMore && <Button onClick={instances.loadMore}>Show more</Button>}
      {isReplaying && (
        <ReplayAgentDialog agent={agent} onDone={instances.reload} onClose={() => setReplaying(false)} />
      )}
    </>
  );
}
