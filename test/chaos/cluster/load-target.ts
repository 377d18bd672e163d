/** What a client sends requests to: a node, or a load balancer before all nodes. */
import type { Isolation } from "./isolation.ts";
import type { ReadinessRecord } from "./readiness-record.ts";

export interface LoadTarget {
  readonly name: string;
  /** Null while it is down. */
  readonly url: string | null;
  readonly isolation: Isolation;
  readonly readiness: ReadinessRecord;
  /** How far its clock may be set at present. */
  readonly clockStepMs: number;
  /** Times of the kills. */
  readonly kills: readonly number[];
  /** Whether a request that began at `since` may have been broken by a kill or a pause. */
  mayHaveBrokenSince(since: number): boolean;
}
