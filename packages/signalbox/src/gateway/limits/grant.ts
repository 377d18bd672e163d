/**
 * What a call has taken of its limits, as a value: it is held until it is settled or released, once.
 *
 *   taken ── settle(charges) ──► over: nothing is held, and what was used is counted
 *     └───── release() ────────► over: nothing is held. A request was counted when it was taken, and stays counted
 */
import type { LimitRule, StepDemand } from "./limit-rule.ts";
import type { NamedBucket } from "./rule-buckets.ts";

/** What a call needs of one bucket. */
export interface Need {
  readonly rule: LimitRule;
  readonly bucket: NamedBucket;
  /** To hold. */
  readonly amount: number;
  /** What of it the call is expected to use: an amount that may become much larger is not lost money when the process is killed. */
  readonly expected: number;
  /** Whether the amount is an upper bound. */
  readonly isBounded: boolean;
  /** Only while nothing else is held. */
  readonly runsAlone: boolean;
  /** A budget of a route. It decided when the route was walked, so here it refuses nothing. */
  readonly isForced: boolean;
  /** The step that needs it. */
  readonly step: Pick<StepDemand, "provider" | "model">;
}

/** What a call has used of one bucket. */
export interface Charge {
  readonly rule: LimitRule;
  readonly bucket: NamedBucket;
  /** More than 0. */
  readonly amount: number;
}

/** Where grants come from. */
export interface GrantOwner {
  /** The grant is over: gives back what it holds, and counts what was used. */
  end(grant: Grant, charges: readonly Charge[]): void;
}

const NO_CHARGES: readonly Charge[] = [];

export class Grant {
  readonly needs: readonly Need[];
  /** Of its record in the journal; 0 if it has none. */
  readonly number: number;
  readonly #owner: GrantOwner;
  #isOver = false;

  constructor(owner: GrantOwner, needs: readonly Need[], number = 0) {
    this.#owner = owner;
    this.needs = needs;
    this.number = number;
  }

  /** Without effect on a grant that is over. */
  settle(charges: readonly Charge[]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#owner.end(this, charges);
  }

  release(): void {
    this.settle(NO_CHARGES);
  }
}
