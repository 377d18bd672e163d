/**
 * Which node runs an instance, for the doors of the agents' area. For a process that is alone (`LOCAL_PLACEMENT`), it is always this one.
 *
 * The owner in PostgreSQL decides; what is known here may be out of date, and a wrong guess costs one more hop. An instance without a living owner
 * belongs to the node that the rendezvous hash selects among the nodes that are up, so that all nodes send its first events to the same one.
 */
import type { NodeInc } from "../../core/node-inc.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";

export interface PlacedWork<T> {
  readonly ref: InstanceRef;
  /** Runs on this node. May reject with `InstanceElsewhereError`: then nothing was run. */
  here(): Promise<T>;
  /**
   * Runs on another node. Rejects with `InstanceElsewhereError` if that node is not the owner, and with `NotSentError` if nothing was sent; both mean
   * that nothing was run. Any other error ends the attempt.
   */
  there(node: NodeInc): Promise<T>;
  /** Default: none. */
  readonly signal?: AbortSignal | undefined;
}

export interface Placement {
  /** The node that runs the instance or should run it; null for this node. Without a query if the owner is known. */
  find(ref: InstanceRef): NodeInc | null | Promise<NodeInc | null>;
  /** Another node reported the owner; null: ask PostgreSQL again. */
  learn(ref: InstanceRef, node: NodeInc | null): void;
  /**
   * Runs the work where the instance is. Tries again, at another node or after a node was declared dead, as long as nothing was run; gives up with
   * `overloaded` and `Retry-After` after the time in which a take-over should have succeeded.
   */
  reach<T>(work: PlacedWork<T>): Promise<T>;
}

/** There is no link to the node, or it takes no more: the work was not sent. */
export class NotSentError extends Error {
  override readonly name = "NotSentError";
}
