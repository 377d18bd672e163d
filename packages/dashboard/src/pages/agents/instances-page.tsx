import { Badge } from "../../components/badge.tsx";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { Time } from "../../components/time.tsx";
import { withQuery } from "../../http/api.ts";
import { useList } from "../../http/use-list.ts";
import { Link } from "../../routing/link.tsx";
import { useQueryValue } from "../../routing/location.ts";
import { useAccountPaths } from "../../session/session.ts";
import type { Instance } from "./agent.ts";

const REFRESH_MS = 5000;

export function InstancesPage({ agent }: { readonly agent: string }) {
  const { api, page } = useAccountPaths();
  const [search, setSearch] = useQueryValue("search");
  const instances = useList<Instance>(withQuery(api("agents", agent, "instances"), { search }), {
    refreshMs: REFRESH_MS,
  });
  return (
    <>
      <PageHeader title={agent} crumbs={[{ title: "Agents", to: page("agents") }]}>
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
      </div>
      <ResourceView of={instances}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title={search === "" ? "No instances yet" : "No matching instances"}>
              <p>
                {search === "" ? (
                  <>
                    An instance is created when the first event for its entity arrives.{" "}
                    <Link to={page("webhooks")}>Send a test event</Link> from a webhook source to create one.
                  </>
                ) : (
                  "No instance name contains this text. Change or clear the search."
                )}
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Instances"
              rows={rows}
              keyOf={(instance) => instance.name}
              columns={[
                {
                  title: "Instance",
                  cell: (instance) => (
                    <Link to={page("agents", agent, instance.name)}>
                      {instance.object_name ?? instance.name}
                    </Link>
                  ),
                },
                {
                  title: "Status",
                  cell: (instance) =>
                    instance.in_memory ? <Badge tone="good">active</Badge> : <Badge>idle</Badge>,
                },
                ...(rows.some(({ node }) => node !== null)
                  ? [{ title: "Node", cell: (instance: Instance) => instance.node ?? "–" }]
                  : []),
                { title: "Connections", align: "end", cell: (instance) => instance.connection_count },
                { title: "Last active", cell: (instance) => <Time at={instance.last_active_at} /> },
                { title: "Created", isMinor: true, cell: (instance) => <Time at={instance.created_at} /> },
              ]}
            />
          )
        }
      </ResourceView>
      {instances.hasMore && <Button onClick={instances.loadMore}>Show more</Button>}
    </>
  );
}
