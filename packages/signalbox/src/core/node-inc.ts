/** The incarnation of a node, as text: a number that each start of a process receives once. */
export type NodeInc = string;
