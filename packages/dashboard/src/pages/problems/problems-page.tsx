/** Instances of all agents that need attention: stuck ones, dead letters, failing queue items and recent errors. */
import type { AgentClass, AgentsApi, InstanceProblem } from "@signalbox/client";
import { useState } from "react";
import { Button } from "../../components/button.tsx";
import { EmptyState } from "../../components/empty-state.tsx";
import { Field } from "../../components/field.tsx";
import { PageHeader } from "../../components/page-header.tsx";
import { ResourceView } from "../../components/resource-view.tsx";
import { StatTile, StatTiles } from "../../components/stat-tile.tsx";
import { count } from "../../format/number.ts";
import { read } from "../../http/api.ts";
import { useResource } from "../../http/use-resource.ts";
import { useQueryValue } from "../../routing/location.ts";
import { useAccount, useAccountPaths, useHasPermission } from "../../session/session.ts";
import { AgentsTabs } from "../agents/agents-tabs.tsx";
import { InstanceTable } from "../agents/instance-table.tsx";
import { ProblemFilter } from "../agents/problem-filter.tsx";
import { ReplayAgentDialog } from "../agents/replay-agent-dialog.tsx";

const REFRESH_MS = 5000;
const KINDS = new Set<string>(["dead_letters", "retrying", "stuck", "error"] satisfies InstanceProblem[]);

export function ProblemsPage() {
  const { api, page } = useAccountPaths();
  const account = useAccount();
  const canEdit = useHasPermission("agents.edit");
  const [problem, setProblem] = useQueryValue("problem");
  const [agent, setAgent] = useQueryValue("agent");
  const [pages, setPages] = useState(1);
  const [isReplaying, setReplaying] = useState(false);
  const agentsPath = api("agents");
  const agents = useResource(agentsPath, (signal) => read<AgentClass[]>(agentsPath, signal));
  const query = {
    ...(KINDS.has(problem) ? { problem: problem as InstanceProblem } : {}),
    ...(agent === "" ? {} : { agent }),
  };
  const problems = useResource(
    `problems ${account.id} ${agent} ${problem} ${pages}`,
    (signal) => readPages(pages, (cursor) => account.agents.problems({ ...query, cursor }, { signal })),
    { refreshMs: REFRESH_MS },
  );
  return (
    <>
      <PageHeader
        title="Problems"
        crumbs={[{ title: "Agents", to: page("agents") }]}
        actions={
          canEdit &&
          agent !== "" && <Button onClick={() => setReplaying(true)}>Replay dead letters of {agent}</Button>
        }
      >
        Instances that need attention: stuck ones, dead letters, items that are retried, and errors of the
        last 24 hours.
      </PageHeader>
      <AgentsTabs current="problems" />
      <div className="filters">
        <Field label="Agent">
          <select value={agent} onChange={({ target }) => setAgent(target.value)}>
            <option value="">All agents</option>
            {(agents.value ?? []).map(({ name, class_name: title }) => (
              <option key={name} value={name}>
                {title}
              </option>
            ))}
          </select>
        </Field>
        <ProblemFilter value={problem} onChange={setProblem} none="Any" />
      </div>
      <ResourceView of={problems}>
        {({ totals, instances, cursor }) => (
          <div className="stack">
            <StatTiles label="Totals">
              <StatTile
                label="Stuck"
                value={count(totals.stuck)}
                {...(totals.stuck > 0 ? { tone: "bad" } : {})}
              />
              <StatTile
                label="Dead letters"
                value={count(totals.dead_letters)}
                note={inInstances(totals.dead_letter_instances)}
                {...(totals.dead_letters > 0 ? { tone: "bad" } : {})}
              />
              <StatTile
                label="Retrying"
                value={count(totals.retrying)}
                note={inInstances(totals.retrying_instances)}
                {...(totals.retrying > 0 ? { tone: "warn" } : {})}
              />
              <StatTile label="Instances with errors" value={count(totals.errors)} />
            </StatTiles>
            {instances.length === 0 ? (
              <EmptyState title="No problems">
                <p>No instance is stuck, has dead letters or failing items, or had an error lately.</p>
              </EmptyState>
            ) : (
              <InstanceTable rows={instances} hasAgents />
            )}
            {cursor !== null && (
              <div>
                <Button onClick={() => setPages(pages + 1)}>Show more</Button>
              </div>
            )}
          </div>
        )}
      </ResourceView>
      {isReplaying && (
        <ReplayAgentDialog agent={agent} onDone={problems.reload} onClose={() => setReplaying(false)} />
      )}
    </>
  );
}

function inInstances(n: number): string | undefined {
  if (n === 0) return undefined;
  return n === 1 ? "in one instance" : `in ${count(n)} instances`;
}

type Page = Awaited<ReturnType<AgentsApi["problems"]>>;

/** Reads the first pages as one. */
async function readPages(
  pages: number,
  readPage: (cursor: string | undefined) => Promise<Page>,
): Promise<Page> {
  let all = await readPage(undefined);
  for (let n = 1; n < pages && all.cursor !== null; n++) {
    const next = await readPage(all.cursor);
    all = { ...next, instances: [...all.instances, ...next.instances] };
  }
  return all;
}
