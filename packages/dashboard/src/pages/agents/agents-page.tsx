import { Badge } from "../../components/badge.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { count } from "../../format/number.ts";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccountPaths } from "../../session/session.ts";
import type { AgentClass } from "./agent.ts";

export function AgentsPage() {
  const { api, page } = useAccountPaths();
  const path = api("agents");
  const agents = useResource(path, (signal) => read<AgentClass[]>(path, signal));
  return (
    <>
      <PageHeader title="Agents">
        An agent is a class. Each entity, such as a repository, customer or device, has its own instance with
        its own state, database, queue and connections.
      </PageHeader>
      <ResourceView of={agents}>
        {(rows) =>
          rows.length === 0 ? (
            <EmptyState title="No agents yet">
              <p>
                Start the service with <code>--agents</code> and a file that exports agent classes, or list
                the file under <code>agents.modules</code> in the configuration.
              </p>
            </EmptyState>
          ) : (
            <Table
              label="Agents"
              rows={rows}
              keyOf={(agent) => agent.name}
              columns={[
                {
                  title: "Agent",
                  cell: (agent) => (
                    <>
                      <Link to={page("agents", agent.name)}>{agent.class_name}</Link>{" "}
                      {agent.is_built_in && <Badge>built-in</Badge>}
                      {agent.kind === "object" && <Badge>object</Badge>}
                    </>
                  ),
                },
                { title: "Instances", align: "end", cell: (agent) => count(agent.instance_count) },
                {
                  title: "Callable methods",
                  isMinor: true,
                  cell: (agent) =>
                    agent.callable.length === 0 ? (
                      <span className="muted">none</span>
                    ) : (
                      <span className="badges">
                        {agent.callable.map(({ name }) => (
                          <Badge key={name}>{name}</Badge>
                        ))}
                      </span>
                    ),
                },
                {
                  title: "Path",
                  isMinor: true,
                  cell: (agent) => <code>/agents/{agent.name}/…</code>,
                },
              ]}
            />
          )
        }
      </ResourceView>
    </>
  );
}
