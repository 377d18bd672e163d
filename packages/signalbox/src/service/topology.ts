/** What this process is: alone with its data folder, alone on PostgreSQL, or a node of a cluster. Decided once, when the storage is opened. */
import type { OpenReach } from "../agents/index.ts";
import type { ClusterNode, Lease } from "../cluster/index.ts";
import type { LocalInstanceStore, SharedInstanceStore } from "../engines/instance-store/index.ts";
import type { DatabaseNode } from "./database-node.ts";
import type { SharedAgentsReport } from "./shared-agents-report.ts";

interface Single {
  readonly kind: "single";
}

interface SingleOnPostgres {
  readonly kind: "singleOnPostgres";
  readonly node: DatabaseNode;
}

/** A node of a cluster, before its instances are open. */
export interface Member {
  readonly kind: "cluster";
  readonly node: DatabaseNode;
  readonly network: ClusterNode;
  readonly lease: Lease;
}

/** What this process is to its database. */
export type Membership = Single | SingleOnPostgres | Member;

export interface Cluster extends Member {
  readonly instances: SharedInstanceStore;
  readonly report: SharedAgentsReport;
  readonly openReach: OpenReach;
}

export type Topology = ((Single | SingleOnPostgres) & { readonly instances: LocalInstanceStore }) | Cluster;

/** Null with SQLite. */
export function nodeOf(membership: Membership): DatabaseNode | null {
  return membership.kind === "single" ? null : membership.node;
}

/** Null for a process that is alone. */
export function networkOf(membership: Membership): ClusterNode | null {
  return membership.kind === "cluster" ? membership.network : null;
}

/** Null for a process that is alone. */
export function clusterOf(topology: Topology): Cluster | null {
  return topology.kind === "cluster" ? topology : null;
}
