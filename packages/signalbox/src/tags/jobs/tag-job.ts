/** A job: one change of the tags of all resources that match a query. */
import type { ResourceQuery } from "../../engines/tag-index/index.ts";
import type { ResourceKey } from "../store/resource-row.ts";
import type { WriteRefusal } from "../store/tag-write.ts";

export type JobOperation = "set" | "patch" | "delete";

/** `failed`: it ended by an error that no further attempt would change. */
export type JobState = "running" | "done" | "cancelled" | "failed";

export interface JobRequest {
  readonly query: ResourceQuery;
  readonly operation: JobOperation;
  /** All tags of a set; of a patch the changes, where null removes a key; empty for a deletion. */
  readonly tags: readonly (readonly [key: string, value: string | null])[];
}

export interface TagJob {
  readonly id: string;
  readonly accountId: string;
  /** As in the history of a resource. */
  readonly actor: string;
  readonly request: JobRequest;
  readonly state: JobState;
  /** Resources with higher numbers were tagged after the job was created. */
  readonly upto: number;
  /** The number of the last visited resource; -1 before the first. */
  readonly position: number;
  /** Resources that matched when the job was created. */
  readonly total: number;
  readonly changed: number;
  readonly unchanged: number;
  readonly failed: number;
  readonly createdAt: number;
  readonly startedAt: number | null;
  readonly endedAt: number | null;
}

/** A resource that a job could not change. */
export interface JobFailure {
  readonly resourceNo: number;
  readonly resource: ResourceKey;
  readonly reason: WriteRefusal;
}
