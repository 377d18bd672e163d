import type { ProblemTotals } from "@signalbox/client";
import { Badge } from "../../components/badge.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { Table } from "../../components/table.tsx";
import { count, durationOf, plural } from "../../format/number.ts";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { Link } from "../../routing/link.tsx";
import { useAccount, useAccountPaths } from "../../session/session.ts";
import type { AgentClass } from "./agent.ts";
import { AgentsTabs } from "./agents-tabs.tsx";
import { Rate } from "./rate.tsx";

const REFRESH_MS = 5000;

export function AgentsPage() {
  const { api, page } = useAccountPaths();
  const path = api("agents");
  const account = useAccount();
  const agents = useResource(path, (signal) => read<AgentClass[]>(path, signal), { refreshMs: REFRESH_MS });
  // The table does not wait for the problems; its cells show a dash until then.
  const problems = useResource(
    `problems ${account.id}`,
    async (signal) =>
      new Map(
        (await account.agents.problems({ limit: 1 }, { signal })).by_agent.map((row) => [row.agent, row]),
      ),
    { refreshMs: REFRESH_MS },
  );
  return (
    <>
      <PageHeader title="Agents">
        An agent is a class. Each entity, such as a repository, customer or device, has its own instance with
        its own state, database, queue and connections.
      </PageHeader>
      <AgentsTabs current="agents" />
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
                    <span className="nowrap">
                      <Link to={page("agents", agent.name)}>{agent.class_name}</Link>{" "}
                      {agent.is_built_in && <Badge>built-in</Badge>}
                      {agent.kind === "object" && <Badge>object</Badge>}
                    </span>
                  ),
                },
                {
                  title: "Turns, 1 h",
                  cell: ({ turns }) => <Rate turns={turns} />,
                },
                {
                  title: "Failed, 1 h",
                  align: "end",
                  isMinor: true,
                  cell: ({ failed_turns: failed }) =>
                    failed === 0 ? (
                      <span className="muted">0</span>
                    ) : (
                      <Badge tone="bad">{count(failed)}</Badge>
                    ),
                },
                {
                  title: "p95",
                  align: "end",
                  amount: ({ turn_p95_ms: p95 }) => p95,
                  formatOf: durationOf,
                },
                { title: "Instances", align: "end", cell: (agent) => count(agent.instance_count) },
                {
                  title: "Problems",
                  cell: ({ name }) => (
                    <AgentProblems
                      name={name}
                      totals={problems.value && (problems.value.get(name) ?? null)}
                    />
                  ),
                },
                {
                  title: "Callable methods",
                  isMinor: true,
                  cell: ({ callable }) => <Methods names={callable.map(({ name }) => name)} />,
                },
              ]}
            />
          )
        }
      </ResourceView>
    </>
  );
}

const SHOWN_METHODS = 3;

/** On one line: the console of an instance has all of them. */
function Methods({ names }: { readonly names: readonly string[] }) {
  if (names.length === 0) return <span className="muted">none</span>;
  const more = names.length - SHOWN_METHODS;
  return (
    <span className="cell-line cell-methods" title={names.join(", ")}>
      <code className="cell-line-rest">{names.slice(0, SHOWN_METHODS).join(", ")}</code>
      {more > 0 && <span className="muted small nowrap">and {more} more</span>}
    </span>
  );
}

function AgentProblems({
  name,
  totals,
}: {
  readonly name: string;
  /** Null without problems, undefined while they are not known. */
  readonly totals: ProblemTotals | null | undefined;
}) {
  const { page } = useAccountPaths();
  if (totals === undefined) return <span className="muted">–</span>;
  if (totals === null) return <span className="muted">none</span>;
  const badges = [
    totals.stuck > 0 && <Badge tone="bad">{count(totals.stuck)} stuck</Badge>,
    totals.dead_letters > 0 && <Badge tone="bad">{plural(totals.dead_letters, "dead letter")}</Badge>,
    totals.retrying > 0 && <Badge tone="warn">{count(totals.retrying)} retrying</Badge>,
    totals.errors > 0 && <Badge tone="warn">{plural(totals.errors, "instance")} with errors</Badge>,
  ].filter((badge) => badge !== false);
  if (badges.length === 0) return <span className="muted">none</span>;
  return (
    <Link to={`${page("problems")}?agent=${encodeURIComponent(name)}`} className="badges">
      {badges.map((badge, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- the order is fixed
        <span key={i}>{badge}</span>
      ))}
    </Link>
  );
}
