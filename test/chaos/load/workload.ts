/**
 * One kind of load with its part of the oracle. A further kind needs a class with these methods and a line in `run-chaos.ts`.
 *
 * A workload reports broken rules to the history when it sees them; `settle` checks what can be known only at the end.
 */
import type { Random } from "../../support/ledger/random.ts";
import { pick } from "../../support/ledger/random.ts";
import type { ChaosNode } from "../cluster/chaos-node.ts";
import type { History } from "../history.ts";
import type { Outcome } from "./chaos-client.ts";

export interface LoadContext {
  readonly nodes: readonly ChaosNode[];
  readonly history: History;
  readonly random: Random;
  /** Setting `cluster.maxStaleMs` of all nodes. */
  readonly maxStaleMs: number;
  /** Aborts when the load shall end. */
  readonly signal: AbortSignal;
}

export interface Workload {
  readonly name: string;
  /** Called while all nodes are healthy. */
  prepare(): Promise<void>;
  /** Clients, each of which runs until the signal aborts. */
  clients(): Promise<void>[];
  /** Called when all clients have ended and all nodes are healthy again. */
  settle(): Promise<void>;
  /** Counts that must not be 0: otherwise the run tested nothing. */
  readonly needed: readonly string[];
}

/** The age of the last heartbeat at the begin of a fault: half a second, more on a busy machine. */
const HEARTBEAT_AGE_MS = 2000;
/** A member without a heartbeat is declared dead after this time. Until then a change waits for it; afterwards it does not know the change. */
const DEAD_AFTER_MS = 2500;

/** Whether a node may have been declared dead. */
export function mayBeDead({ node, startedAt, endedAt }: Outcome): boolean {
  return node.isolation.longestWithin(startedAt, endedAt) + HEARTBEAT_AGE_MS >= DEAD_AFTER_MS;
}

/** Whether a node may answer 503 to every request: it has not reached PostgreSQL for `maxStaleMs`. */
export function mayBeStale({ maxStaleMs }: LoadContext, { node, startedAt, endedAt }: Outcome): boolean {
  return node.isolation.longestWithin(startedAt, endedAt) + HEARTBEAT_AGE_MS >= maxStaleMs;
}

export const anyNode = ({ nodes, random }: LoadContext): ChaosNode => pick(random, nodes);
