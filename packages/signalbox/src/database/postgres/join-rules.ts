/** Which nodes may share a database. */
import type { SharedCheck } from "../membership.ts";

/** What a node shows to the nodes that are running. */
export interface JoiningNode {
  /** Derived from the cluster's secret; null for a node that runs alone. */
  readonly secretCheck: string | null;
  /** The secrets that all nodes must share. */
  readonly shared: readonly SharedCheck[];
  /** The versions of the link protocol that the node speaks. */
  readonly linkVersions: VersionRange;
}

export interface VersionRange {
  readonly min: number;
  readonly max: number;
}

/** The row of a running node. */
export interface LivingNode {
  readonly inc: string;
  readonly name: string;
  readonly version: string;
  readonly secretCheck: string | null;
  /** JSON. */
  readonly shared: string;
  readonly linkMin: number;
  readonly linkMax: number;
  readonly beats: string;
}

/** Why a node may not join. */
export class JoinRefusal extends Error {
  override readonly name = "JoinRefusal";
  /** Changes with each heartbeat of the running nodes; null if they are not the reason. */
  readonly sign: string | null;

  constructor(message: string, sign: string | null = null) {
    super(message);
    this.sign = sign;
  }
}

/** Throws `JoinRefusal` if a running node does not allow it. */
export function refuseBeside(living: readonly LivingNode[], node: JoiningNode): void {
  const problem = living.map((other) => problemWith(other, node)).find((text) => text !== null);
  if (problem === undefined) return;
  throw new JoinRefusal(problem, living.map(({ inc, beats }) => `${inc}:${beats}`).join());
}

function problemWith(other: LivingNode, { secretCheck, shared, linkVersions }: JoiningNode): string | null {
  if (other.secretCheck === null || secretCheck === null)
    return "the PostgreSQL database is in use by another Signalbox process; to run several, set the same SIGNALBOX_CLUSTER_SECRET on all of them";
  if (other.secretCheck !== secretCheck)
    return "SIGNALBOX_CLUSTER_SECRET differs from that of the nodes that are running";
  return problemWithSecrets(other, shared) ?? problemWithLinks(other, linkVersions);
}

/** Each node must be able to use what the other one writes, so each accepts the current value of the other. */
function problemWithSecrets(other: LivingNode, own: readonly SharedCheck[]): string | null {
  const theirs = JSON.parse(other.shared) as SharedCheck[];
  for (const { variable, ids } of own) {
    const otherIds = theirs.find((check) => check.variable === variable)?.ids;
    if (otherIds === undefined || (accepts(ids, otherIds) && accepts(otherIds, ids))) continue;
    return `${variable} differs from that of the running node "${other.name}"; all nodes of a cluster need the same value`;
  }
  return null;
}

/** Nodes that cannot talk to each other would wait for each other. */
function problemWithLinks(other: LivingNode, { min, max }: VersionRange): string | null {
  if (Math.max(min, other.linkMin) <= Math.min(max, other.linkMax)) return null;
  return `this version speaks the link protocol ${min} to ${max}, the running node "${other.name}" (version ${other.version}) ${other.linkMin} to ${other.linkMax}; upgrade through a version that speaks both`;
}

function accepts(ids: readonly string[], [current]: readonly string[]): boolean {
  return current !== undefined && ids.includes(current);
}
