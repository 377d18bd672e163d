/**
 * Reserves the cost of each step of a call before the step is sent. A step that no budget covers is refused, and the call goes to the next one.
 * When the call has ended, the step that answered is settled with the cost, and the others with nothing.
 */
import { SignalboxError } from "@signalbox/protocol";
import type { Step } from "../plan/plan-step.ts";
import type { SpendReservation } from "./spend-limits.ts";

export class StepBudget {
  readonly #reserve: (step: Step) => SpendReservation | null;
  readonly #held = new Map<Step, SpendReservation>();

  /** `reserve` throws a `SignalboxError` when a limit is exhausted. */
  constructor(reserve: (step: Step) => SpendReservation | null) {
    this.#reserve = reserve;
  }

  admit(step: Step): SignalboxError | null {
    try {
      const reservation = this.#reserve(step);
      if (reservation !== null) this.#held.set(step, reservation);
      return null;
    } catch (error) {
      if (error instanceof SignalboxError) return error;
      throw error;
    }
  }

  settle(answered: Step, cost: number | null): void {
    for (const [step, reservation] of this.#held) reservation.settle(step === answered ? cost : 0);
    this.#held.clear();
  }
}
