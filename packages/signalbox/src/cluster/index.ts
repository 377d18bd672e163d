/** Nodes that share one database: their links, messages between them, and the settings that all of them keep in memory. */
export { ACKNOWLEDGED, ClusterNode, type ClusterNodeOptions } from "./cluster-node.ts";
export { ClusterSettings } from "./cluster-settings.ts";
export { Lease } from "./lease.ts";
export type { ClusterMember, NodeIdentity } from "./membership.ts";
