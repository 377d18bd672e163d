/** What the database tells a node about the cluster. The adapter for PostgreSQL implements the other side. */

export interface NodeIdentity {
  /** The incarnation: a number that each start of a process receives once. */
  readonly inc: string;
  /** Different for every database. */
  readonly cluster: string;
}

export interface ClusterMember {
  readonly inc: string;
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly version: string;
  readonly state: "up" | "draining";
  readonly joinedAt: number;
  /** Time since the last heartbeat, by the clock of the database. */
  readonly ageMs: number;
}

/** Identifies the values of a secret that all nodes must share, without revealing them. */
export interface SharedCheck {
  /** The environment variable. */
  readonly variable: string;
  readonly ids: readonly string[];
}

export interface ClusterMembership {
  readonly secretCheck: string;
  readonly shared: readonly SharedCheck[];
  /** Opens the address at which other nodes reach this one. Called for each incarnation, before other nodes see it. */
  openAddress(identity: NodeIdentity): Promise<{ readonly host: string; readonly port: number }>;
  onMembers(members: readonly ClusterMember[]): void;
  /** This node was declared dead, and has joined again. */
  onRejoined(): Promise<void>;
}
