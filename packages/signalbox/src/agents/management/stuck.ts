/** Turns that run longer than they should: only the node that runs them knows. */
import type { Directory } from "../instance/directory.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";

export interface StuckQuery {
  readonly account: string;
  /** Undefined for all agents. */
  readonly agent?: string | undefined;
  readonly seconds: number;
}

/** Instances of all nodes, at most `MAX_STUCK` of each. */
export type FindStuck = (query: StuckQuery) => Promise<readonly InstanceRef[]>;

const MAX_STUCK = 500;

/** On this node. */
export function findStuck(
  { directory, now }: { readonly directory: Directory; now(): number },
  { account, agent, seconds }: StuckQuery,
): InstanceRef[] {
  const before = now() - seconds * 1000;
  const found: InstanceRef[] = [];
  for (const { ref, runningTurn } of directory.instances()) {
    if (ref.account !== account || (agent !== undefined && ref.agent !== agent)) continue;
    if (runningTurn === null || runningTurn.since > before) continue;
    if (found.push(ref) >= MAX_STUCK) break;
  }
  return found;
}
