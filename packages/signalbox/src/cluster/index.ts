/** Nodes that share one database: their links, and messages between them. */
export { ACKNOWLEDGED, ClusterNode, type ClusterNodeOptions } from "./cluster-node.ts";
export type { ClusterMember, NodeIdentity } from "./membership.ts";
