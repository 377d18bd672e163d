/**
 * Which node runs an instance whose history is in PostgreSQL. The layer that places instances and forwards requests uses this interface; the
 * runtime of an instance uses `InstanceStore` and `InstanceDatabase` as with the other engines.
 *
 * The history of an instance is a log. Each record has a position, and the log takes a record only if the writer's epoch is the current one and the
 * record at the position before exists. A take-over increases the epoch and is itself a record, at the next position.
 *
 * Invariants:
 * 1. One history. At most one record for each position, ever: the primary key. A position at or below the snapshot is never written again.
 * 2. A take-over is part of the history. The claim is at the position that the former owner would write next. So the former owner's record is
 *    either before the claim, and the new owner has read it, or it is refused.
 * 3. Nothing is acknowledged that is not in the history: `sync` resolves when PostgreSQL has returned the record. A record is sent only after the
 *    one before it was acknowledged, so the history has no gap.
 * 4. A commit of SQLite, or several, is one record: what is in the history happened once and completely.
 * 5. After a lost connection nothing is sent again. PostgreSQL is asked for the last position: if the record is there, it is acknowledged; if
 *    not, the instance is fenced.
 * 6. No acknowledged write depends on a clock. Answers that only read do: they may leave while `confirm` returns null, or when its promise
 *    resolves.
 * 7. The snapshot never goes back. Records at or below the snapshot are deleted a minute after it, except the claim of the current epoch; a
 *    statement takes at most ten seconds.
 *
 * A fenced instance is dropped without a report to other nodes: its database refuses everything from then on, `sync` rejects with `InstanceFencedError` (503 with
 * Retry-After), and `close` writes nothing. The next `open` claims the instance again, or throws `InstanceElsewhereError`.
 *
 * Safety never depends on who is allowed to claim. Liveness does: an instance of a living node is left to that node.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { NodeInc } from "../../../core/node-inc.ts";
import type { InstanceStore } from "../instance-store.ts";
import type { HistorySize } from "./history-size.ts";

export interface SharedInstanceStore extends InstanceStore {
  readonly ownership: Ownership;
  /** How long the oldest record has waited that PostgreSQL has not acknowledged; 0 if none waits. */
  readonly lagMs: number;
  /**
   * Makes a database file that no process has open, without a WAL, the first content of the instance. False, and nothing is changed, if the instance
   * has a content already.
   */
  importFile(name: string, path: string): Promise<boolean>;
  /** PostgreSQL has another server, was restarted, or does not answer: connections are replaced, and what runs on them fails or is asked for. */
  reconnect(): void;
  /** Of each store, as configured. */
  readSizes(): Promise<readonly HistorySize[]>;
}

/** What the engine asks about the nodes. */
export interface Nodes {
  /** The incarnation of this process; another one after it was declared dead and has joined again. */
  readonly self: NodeInc;
  /** True if no other node can have declared this one dead. Measured from the time at which the last heartbeat was sent. */
  readonly isLeaseFresh: boolean;
  /** How long this node has not reached its database; 0 or absent if it has no reason to believe so, infinite if other nodes have given it up. */
  readonly cutOffMs?: number;
  /** The incarnations that were not declared dead, as committed at the time of the call. */
  readLiving(): Promise<ReadonlySet<NodeInc>>;
}

export type ClaimOutcome =
  /** This node owns the instance: `open` needs no further claim. */
  | { readonly kind: "held"; readonly epoch: number }
  /** A living node owns it. */
  | { readonly kind: "elsewhere"; readonly node: NodeInc };

/** Why an instance of this node was dropped. */
export type FenceReason =
  /** Another node has claimed or destroyed the instance. */
  | "taken"
  /** The outcome of a write stayed unknown, or the write did not happen. */
  | "unknown"
  /** PostgreSQL does not have records that it had acknowledged. */
  | "lost"
  /** This node was declared dead and has a new incarnation. */
  | "rejoined"
  /** The layer above asked for it. */
  | "dropped";

export interface Fence {
  readonly name: string;
  readonly epoch: number;
  readonly reason: FenceReason;
}

export interface InstancePlacement {
  /** Null: no node owns the instance, or it does not exist. The owner may be dead. */
  readonly node: NodeInc | null;
}

export interface Ownership {
  /** The owner as far as this process knows it, without a query; undefined if it knows nothing. May be out of date. */
  peek(name: string): InstancePlacement | undefined;
  /** The same for several names, with a query for those that this process does not know. */
  find(names: readonly string[]): Promise<readonly InstancePlacement[]>;
  /** Another node has reported the owner, or that it is not the owner (`null`: ask PostgreSQL again). Ignored for an instance of this node. */
  learn(name: string, node: NodeInc | null): void;

  /**
   * Makes this node the owner of the instances, in one transaction for each group. Instances of living nodes are left alone unless `isForced`.
   * An instance that does not exist is created without a database. The outcomes are in the order of the names.
   */
  claim(
    names: readonly string[],
    options?: { readonly isForced?: boolean },
  ): Promise<readonly ClaimOutcome[]>;
  /** The names that this node owns, open or not. */
  readonly held: Iterable<string>;
  isHeld(name: string): boolean;
  /** The epoch of an instance that this node owns; undefined for others. */
  epochOf(name: string): number | undefined;

  /**
   * Gives the instances up, or hands them to a node. Their databases must be closed: then every record is acknowledged, and no turn runs. Names
   * that this node does not own are ignored. The other node still has to claim, which `open` does.
   */
  release(names: readonly string[], to?: NodeInc | null): Promise<void>;

  /**
   * Null if an answer that depends only on reads may leave now. Otherwise it may leave when the promise resolves: PostgreSQL still knows this node
   * as the owner. Rejects with `InstanceFencedError` if another node has taken the instance, or if PostgreSQL cannot be reached.
   */
  confirm(name: string): Promise<void> | null;

  /** The instance must be dropped from memory, and its waiting callers get the error of `InstanceFencedError`. */
  onFenced(listener: (fence: Fence) => void): void;
  /** Fences an open instance without a query, for example because a link reported its new owner. */
  drop(name: string): void;
  /** This process has another incarnation: all instances are fenced. */
  rejoined(): void;

  /** How long this node has not reached its database, so that others may have its instances; 0 if it has no reason to believe so. */
  readonly cutOffMs: number;
  readonly figures: OwnershipFigures;
  /** The last ones of this node, oldest first. */
  readonly recentTakeOvers: readonly TakeOver[];
}

export interface TakeOver {
  readonly name: string;
  /** The node that was gone. */
  readonly from: NodeInc;
  readonly at: number;
}

/** Counters since the start, for metrics. */
export interface OwnershipFigures {
  readonly appends: number;
  readonly records: number;
  readonly bytes: number;
  readonly claims: number;
  readonly takeOvers: number;
  readonly refusals: number;
  readonly unknownOutcomes: number;
  readonly restores: number;
  readonly cacheHits: number;
  readonly compactions: number;
  /** Records that PostgreSQL had acknowledged and does not have any more. */
  readonly lostRecords: number;
}

/** Seconds: a take-over or a move takes less. */
const RETRY_AFTER = { "retry-after": "1" };

/** Another node owns the instance, and nothing was run here: the request belongs there. */
export class InstanceElsewhereError extends SignalboxError {
  /** The inherited test accepts every `SignalboxError`. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return super[Symbol.hasInstance](value) && (value as { node?: unknown }).node !== undefined;
  }

  /** Null if this node does not know which one: ask PostgreSQL. */
  readonly node: NodeInc | null;

  constructor(node: NodeInc | null) {
    super("overloaded", { message: "The instance runs on another node", headers: RETRY_AFTER });
    this.node = node;
  }
}

/** The instance was taken from this node, or the outcome of its last writes is unknown. Callers should try again. */
export class InstanceFencedError extends SignalboxError {
  /** The inherited test accepts every `SignalboxError`. */
  static override [Symbol.hasInstance](value: unknown): boolean {
    return super[Symbol.hasInstance](value) && (value as { fence?: unknown }).fence !== undefined;
  }

  readonly fence: FenceReason;

  constructor(fence: FenceReason, cause?: unknown) {
    super("overloaded", {
      message: "The instance has moved to another node; try again",
      headers: RETRY_AFTER,
      ...(cause === undefined ? {} : { cause }),
    });
    this.fence = fence;
  }
}
