/** The nodes of a cluster, and the state of the node that answers. Requires the root token. */
import type { RequestOptions, Transport } from "./transport.ts";

export interface ClusterNode {
  readonly id: string;
  readonly name: string;
  /** Where other nodes reach it; null for a server that runs alone. */
  readonly address: string | null;
  readonly version: string;
  readonly state: "up" | "draining";
  /** Time since its last heartbeat. */
  readonly age_ms: number;
  readonly joined_at: string;
  /** The link between the node that answers and this one. */
  readonly link: "self" | "up" | "down";
  /** Why the node is not ready; empty if it is, null if it does not answer. */
  readonly problems: readonly string[] | null;
  /** Null without a cluster, and for a node that does not answer. */
  readonly agents: ClusterAgents | null;
}

export interface LostNode {
  readonly id: string;
  readonly name: string;
  readonly version: string;
  readonly last_seen_at: string;
}

/** An instance that a node has taken from one that was gone. */
export interface TakeOver {
  readonly account: string;
  readonly agent: string;
  readonly name: string;
  /** Null if the name of that node is not known any more. */
  readonly from: string | null;
  readonly at: string;
}

export interface ClusterAgents {
  readonly held: number;
  readonly claims: number;
  readonly take_overs: number;
  /** The last ones, newest first. */
  readonly recent_take_overs: readonly TakeOver[];
  readonly refusals: number;
  readonly unknown_outcomes: number;
  readonly lost_records: number;
  readonly lag_ms: number;
  readonly log_records: number;
  readonly log_bytes: number;
  readonly oldest_snapshot_ms: number;
}

export interface ClusterStatus {
  readonly node: string;
  readonly mode: "single" | "cluster";
  readonly database: "sqlite" | "postgres";
  /** Why the node is not ready; empty if it is. */
  readonly problems: readonly string[];
  /** Time since PostgreSQL acknowledged a heartbeat; null with SQLite. */
  readonly heartbeat_age_ms: number | null;
  readonly max_stale_ms: number | null;
  /** True while the node refuses requests, because it has not reached PostgreSQL for `max_stale_ms`. */
  readonly is_stale: boolean;
  readonly clock_offset_ms: number | null;
  /** Nodes that were declared dead lately, and have not joined again. */
  readonly lost_nodes: readonly LostNode[];
  /** The instances of this node, since its start, and their histories in PostgreSQL; null without a cluster. */
  readonly agents: ClusterAgents | null;
  /** Commits that PostgreSQL had acknowledged to this node and has lost. */
  readonly lost_commits: {
    readonly count: number;
    readonly writes: number;
    readonly last_at: string | null;
  };
  readonly settings: readonly DatabaseSetting[];
}

/** A setting of PostgreSQL on which the durability of writes depends. */
export interface DatabaseSetting {
  readonly name: string;
  readonly value: string;
  readonly is_safe: boolean;
  readonly note: string | null;
}

export class ClusterApi {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  status(options: RequestOptions = {}): Promise<ClusterStatus> {
    return this.#transport.result("GET", "/cluster", options);
  }

  nodes(options: RequestOptions = {}): Promise<ClusterNode[]> {
    return this.#transport.result("GET", "/cluster/nodes", options);
  }
}
