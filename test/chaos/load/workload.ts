/**
 * One kind of load with its part of the oracle. A further kind needs a class with these methods and a line in `run-chaos.ts`.
 *
 * A workload reports broken rules to the history when it sees them; `settle` checks what can be known only at the end.
 */
import { availableParallelism, loadavg } from "node:os";
import type { Random } from "../../support/ledger/random.ts";
import { pick } from "../../support/ledger/random.ts";
import type { LoadTarget } from "../cluster/load-target.ts";
import type { MemberWatch } from "../cluster/member-watch.ts";
import type { Disturbance } from "../disturbance.ts";
import type { History } from "../history.ts";
import type { Outcome } from "./chaos-client.ts";

export interface LoadContext {
  readonly nodes: readonly LoadTarget[];
  readonly members: MemberWatch;
  readonly disturbance: Disturbance;
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
  /** Those of them that the load reaches without a fault. The first fault waits for them, however slow the machine is. */
  readonly warmUp: readonly string[];
}

/** A node is ready for this time after its last heartbeat. So this is the largest age of the heartbeat of a node that is ready. */
const READY_MS = 2000;
/** A probe of readiness that failed shortly before a request explains its refusal. */
const BEFORE_MS = 1000;
/** The answer to a probe takes a millisecond. */
const STARVED_MS = 500;
/** Processes that want to run, per core. A run alone has one or two. */
const MAX_LOAD = 5;

/**
 * Whether the node that answered may lack a change although the change was answered before: it was declared dead while the change was made, so
 * that the change did not wait for it, and it has not been ready since.
 */
export async function mayLack({ members }: LoadContext, change: Outcome, use: Outcome): Promise<boolean> {
  if (use.node.readiness.wasReadyBetween(change.endedAt, use.startedAt)) return false;
  await members.readAfter(change.endedAt);
  return members.mayHaveBeenDead(use.node.name, change.startedAt, change.endedAt);
}

/** Whether a node may answer 503 to every request: it has not reached PostgreSQL for `maxStaleMs`. A clock that was set counts, too. */
export function mayBeStale({ maxStaleMs }: LoadContext, { node, endedAt }: Outcome): boolean {
  const unreadyMs = endedAt - node.readiness.lastReadyBefore(endedAt);
  return unreadyMs + READY_MS + node.clockStepMs >= maxStaleMs;
}

type Time = Pick<Outcome, "startedAt" | "endedAt">;

/**
 * Whether a request that needs PostgreSQL or another node may be answered 503: there was a fault, or the whole machine is so short of processor time
 * that a time limit between nodes may pass.
 */
export function mayBeUnavailable(context: LoadContext, time: Time): boolean {
  return isDisturbed(context, time) || isStarved();
}

/** `listener.headerTimeoutMs` of the nodes. */
const RECEIVE_MS = 10_000;

/**
 * Whether a request may be refused, so that its sender repeats it: with 503, or with 408 by a node that was paused while the request arrived. That node
 * looks at the clock before it reads what has arrived meanwhile; nothing was run.
 */
export function mayBeRefused(context: LoadContext, outcome: Time & { readonly status: number }): boolean {
  const { status, startedAt, endedAt } = outcome;
  if (status === 408) return endedAt - startedAt > RECEIVE_MS && isDisturbed(context, outcome);
  return status === 503 && mayBeUnavailable(context, outcome);
}

/**
 * Whether there was a fault, or a node reported that it is not ready, or was so short of processor time that even the answer whether it is ready took
 * long.
 */
export function isDisturbed({ disturbance, nodes }: LoadContext, { startedAt, endedAt }: Time): boolean {
  const from = startedAt - BEFORE_MS;
  return (
    disturbance.touches(startedAt, endedAt) ||
    nodes.some(
      ({ readiness }) =>
        readiness.wasUnreadyWithin(from, endedAt) || readiness.slowestWithin(from, endedAt) > STARVED_MS,
    )
  );
}

function isStarved(): boolean {
  const [lastMinute = 0] = loadavg();
  return lastMinute > MAX_LOAD * availableParallelism();
}

export const anyNode = ({ nodes, random }: LoadContext): LoadTarget => pick(random, nodes);
