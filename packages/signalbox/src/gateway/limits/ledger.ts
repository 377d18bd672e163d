/**
 * The ledger of limits: how much of each is used and held, and the only way to take more. `LocalLedger` (buckets in memory, and a journal of
 * money) belongs to one process with SQLite; `SharedLedger` takes shares of rows in PostgreSQL. `create-limits.ts` chooses one of them, once.
 *
 *   const taken = ledger.take(needs);        // a promise only if nodes share the limits and PostgreSQL must be asked
 *   if (taken instanceof Refusal) …          // a rule has no room, or cannot be checked
 *   taken.settle(charges);                   // or taken.release()
 *
 * Invariants:
 * 1. All amounts of `needs` are taken, or none.
 * 2. What calls hold and have used does not exceed a limit together, except by the calls that limits.ts names.
 * 3. A promise of `take` never rejects. An amount is assigned to the waiting call when PostgreSQL answers, so no other call takes it in between. A
 *    caller that has ended meanwhile releases the grant.
 * See docs/decisions/0299.
 */
import type { Charge, Grant, GrantOwner, Need } from "./grant.ts";
import type { Refusal } from "./limit-refusal.ts";
import type { LimitKind, LimitOwner, LimitRule } from "./limit-rule.ts";
import type { NamedBucket, RuleBuckets } from "./rule-buckets.ts";

export type Taken = Grant | Refusal;

export type VisitBucket = (ownerKey: string, kind: string, name: string) => NamedBucket | null;

export interface Ledger extends GrantOwner {
  /** `isWrittenLater`: the caller does nothing with the grant before `whenWritten` calls back. Otherwise a kill can lose no money of the grant. */
  take(needs: readonly Need[], isWrittenLater?: boolean): Taken | Promise<Taken>;
  /** Calls back when everything that was taken before survives the end of the process; never at once. */
  whenWritten(task: () => void): void;
  /** As `take`, for a call that cannot wait: refuses what would have to wait. */
  takeNow(needs: readonly Need[]): Taken;
  /** Counts what was used without having been taken. */
  charge(charges: readonly Charge[]): void;
  /** The buckets of a rule. */
  bucketsOf(rule: LimitRule): RuleBuckets;
  /** The clock of such amounts: money follows the system clock, because it outlives the process; everything else may follow a monotonic one. */
  now(kind: LimitKind): number;
  /** Reads what other nodes have counted for owners of one account; `visit` gets the key of the owner, kind and name of each bucket, and returns the bucket. */
  refresh(owners: readonly LimitOwner[], visit: VisitBucket): Promise<void>;
  /** The owner is gone. Its amounts never count for a later owner of the same name, including those of running calls. */
  forget(owner: LimitOwner): void;
  /** Owners that have stored amounts, as far as they were not used since the start. */
  idleOwners(): Promise<readonly LimitOwner[]>;
  start(): Promise<void>;
  /** Rejects when amounts could not be stored. */
  stop(): Promise<void>;
}
