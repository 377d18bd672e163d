/** Nodes that share one database: their links, messages between them, and the settings that all of them keep in memory. */
export { ClusterNode } from "./cluster-node.ts";
export { ClusterSettings } from "./cluster-settings.ts";
export { Lease } from "./lease.ts";
