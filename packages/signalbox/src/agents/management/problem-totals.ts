/** Sums of what is wrong with the instances of an account: of each agent, and of all. */
import { z } from "zod";
import type { AgentProblems } from "../instance/instance-pages.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";

export const problemTotals = z.object({
  instances: z.int(),
  dead_letters: z.int(),
  dead_letter_instances: z.int(),
  retrying: z.int(),
  retrying_instances: z.int(),
  stuck: z.int(),
  errors: z.int(),
});
export type ProblemTotals = z.infer<typeof problemTotals>;

export const agentProblemTotals = problemTotals.extend({ agent: z.string() });
export type AgentProblemTotals = z.infer<typeof agentProblemTotals>;

/**
 * The totals of agents with problems, by name. The catalog does not know which instances are stuck: `stuckAlone` are those of `stuck` that have no
 * other problem, and so are not counted in `known`.
 */
export function totalsOfAgents(
  known: readonly AgentProblems[],
  stuck: readonly InstanceRef[],
  stuckAlone: readonly InstanceRef[],
): AgentProblemTotals[] {
  const problems = new Map(known.map((row) => [row.agent, row]));
  const stuckBy = countByAgent(stuck);
  const stuckAloneBy = countByAgent(stuckAlone);
  return [...new Set([...problems.keys(), ...stuckBy.keys()])].toSorted().map((agent) => {
    const row = problems.get(agent);
    return {
      agent,
      instances: (row?.instances ?? 0) + (stuckAloneBy.get(agent) ?? 0),
      dead_letters: row?.deadLetters ?? 0,
      dead_letter_instances: row?.deadLetterInstances ?? 0,
      retrying: row?.retrying ?? 0,
      retrying_instances: row?.retryingInstances ?? 0,
      stuck: stuckBy.get(agent) ?? 0,
      errors: row?.errors ?? 0,
    };
  });
}

export function addTotals(rows: readonly ProblemTotals[]): ProblemTotals {
  const sum = (key: keyof ProblemTotals) => rows.reduce((total, row) => total + row[key], 0);
  return {
    instances: sum("instances"),
    dead_letters: sum("dead_letters"),
    dead_letter_instances: sum("dead_letter_instances"),
    retrying: sum("retrying"),
    retrying_instances: sum("retrying_instances"),
    stuck: sum("stuck"),
    errors: sum("errors"),
  };
}

function countByAgent(refs: readonly InstanceRef[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { agent } of refs) counts.set(agent, (counts.get(agent) ?? 0) + 1);
  return counts;
}
