/** How instances leave memory. */

/** Why an instance fails. `storage`: what it shares with the others is unavailable, so its own work is not to blame. */
export type InstanceFailure = "storage" | "own";

/** After a fence that does not say who has the instance, its due work is looked for. PostgreSQL, whose failure is the usual cause, is often back by then. */
export const FENCED_PAUSE_MS = 1000;

/** For the directory. */
export interface Leaving {
  /** Resolves when a successor may open the database. */
  readonly closed: Promise<void>;
  /** True, once it is closed, when nothing that is stored is worth keeping: the instance is removed. */
  readonly isDisposable: () => boolean;
  /** When the instance must be woken at the latest; null for never. */
  readonly wakeAt: number | null;
  /** Set if the instance could not start, or its storage failed. */
  readonly failure: InstanceFailure | null;
  /** The storage ended the instance: what ran has not failed. */
  readonly isCutOff: boolean;
}

/** For the instance itself. */
export interface LeaveOptions {
  /** For turns that have not begun. */
  readonly reason?: unknown;
  /** The database is closed when it resolves; default: at once. */
  readonly quiet?: Promise<void>;
  /** Called when the database is closed; returns the error for turns that have not begun, instead of `reason`. */
  readonly handOver?: (wasQuiet: boolean) => Promise<Error>;
}
