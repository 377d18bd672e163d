/** What a database of several nodes reports to a node about the cluster. The adapter for PostgreSQL reports it, `cluster/` uses it. */
import type { NodeInc } from "../core/node-inc.ts";

export interface NodeIdentity {
  readonly inc: NodeInc;
  /** Different for every database. */
  readonly cluster: string;
}

export type NodeState = "up" | "draining";

export interface ClusterMember {
  readonly inc: NodeInc;
  readonly name: string;
  /** Where other nodes reach the links of this one; empty for a node without a cluster secret. */
  readonly host: string;
  readonly port: number;
  readonly version: string;
  readonly state: NodeState;
  readonly joinedAt: number;
  /** Time since the last heartbeat, by the clock of the database. */
  readonly ageMs: number;
}

/** Identifies the values of a secret that all nodes must share, without revealing them. A node encrypts with the first one and accepts all. */
export interface SharedCheck {
  /** The environment variable. */
  readonly variable: string;
  readonly ids: readonly string[];
}

/** A node, as its database uses it. */
export interface ClusterMembership {
  readonly secretCheck: string;
  readonly shared: readonly SharedCheck[];
  /** Opens the address at which other nodes reach this one. Called for each incarnation, before other nodes see it. */
  openAddress(identity: NodeIdentity): Promise<{ readonly host: string; readonly port: number }>;
  onMembers(members: readonly ClusterMember[]): void;
  /** This node was declared dead, and has joined again. */
  onRejoined(): Promise<void>;
}
