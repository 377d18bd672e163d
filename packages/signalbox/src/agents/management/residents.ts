/** What only the node that runs an instance knows of it, for lists of instances. */
import type { SocketHub } from "../connections/socket-hub.ts";
import type { AgentPulses, PulseFigures } from "../instance/agent-pulse.ts";
import type { Directory } from "../instance/directory.ts";
import { type InstanceRef, keyOf } from "../instance/instance-ref.ts";
import type { ManagedObjects } from "./managed-objects.ts";

export interface Residency {
  readonly isInMemory: boolean;
  /** Milliseconds since the epoch; null if the catalog knows it. */
  readonly lastActiveAt: number | null;
  readonly connectionCount: number;
  /** Of an object of a worker program. */
  readonly objectName: string | null;
  /** The turn at an await; null for none. */
  readonly turn: RunningTurn | null;
  readonly waitingTurns: number;
}

export interface RunningTurn {
  readonly kind: string;
  readonly label: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
}

/** The page of a list: all of one class. */
export interface ResidentsQuery {
  readonly account: string;
  readonly agent: string;
  readonly names: readonly string[];
  readonly areObjects: boolean;
}

export interface ResidentsParts {
  readonly directory: Directory;
  readonly hub: SocketHub;
  readonly pulses: AgentPulses;
  readonly objects: ManagedObjects;
}

/** How busy the agents of an account are, on all nodes; an agent can be listed more than once. */
export type FindPulses = (account: string) => Promise<readonly PulseFigures[]>;

/** In the order of the names. */
export type FindResidents = (query: ResidentsQuery) => Promise<readonly Residency[]>;

/** On this node. Databases of objects are opened one after the other: a page must not use up the open files. */
export async function findResidents(parts: ResidentsParts, query: ResidentsQuery): Promise<Residency[]> {
  const { account, agent, names, areObjects } = query;
  const found: Residency[] = [];
  for (const name of names) found.push(await residencyOf(parts, { account, agent, name }, areObjects));
  return found;
}

export async function residencyOf(
  { directory, hub, objects }: ResidentsParts,
  ref: InstanceRef,
  isObject: boolean,
): Promise<Residency> {
  const instance = directory.find(ref);
  return {
    isInMemory: instance !== undefined,
    lastActiveAt: instance?.lastActiveAt ?? null,
    connectionCount: isObject ? objects.connectionCount(ref) : (hub.find(keyOf(ref))?.joinedCount ?? 0),
    // An object that is destroyed meanwhile has no database.
    turn: instance?.runningTurn ?? null,
    waitingTurns: instance?.waitingTurns ?? 0,
    objectName: isObject ? await objects.nameOf(ref).catch(() => null) : null,
  };
}
