/**
 * What other parts of the gateway add to an attempt. The loop (`call.ts`) calls them at these points, and at no other:
 *
 *   step chosen → `StepAdmission.admit` → `KeyPool.pick` → request sent → response ─┬─ failed: `KeyPool.report`, `AttemptReport`
 *                                                    (`DoorStep.convert`: both)     └─ answer: `KeyPool.report`
 */
import type { SignalboxError } from "@signalbox/protocol";
import type { ResponseHead, Usage } from "../../engines/relay/index.ts";
import type { Step } from "../plan/plan-step.ts";
import type { AttemptFailure } from "../reliability/attempt-failure.ts";

/** Decides whether a step may be sent, e.g. by its budget. Called once for each step, before its first attempt. */
export interface StepAdmission {
  /** An error sends the loop to the next step; the error of the last step goes to the client. */
  admit(step: Step, stepIndex: number): SignalboxError | null;
  /** Called for each attempt after the first one of the call; an error has the same effect. */
  admitAttempt?(step: Step): SignalboxError | null;
  /** An attempt failed, and another one follows. */
  attemptFailed?(report: AttemptReport): void;
  /** Another attempt is to run beside the present one. */
  keepReservation?(): void;
}

/** Steps that are determined only when they are needed: the fallback of a dynamic route. */
export interface StepSource {
  /** Whether `next` may return a step. */
  readonly mayHaveNext: boolean;
  /** The step that follows the failed one; null at the end of the route. */
  next(): Step | null;
}

/** One attempt that did not answer the client, for accounting. The attempt that answered is described by the call's outcome. */
export interface AttemptReport {
  readonly step: Step;
  readonly stepIndex: number;
  readonly keyId: string | null;
  /** `failed`: the loop went on; `cancelled`: another attempt answered first (hedging). */
  readonly outcome: "failed" | "cancelled";
  readonly failure: AttemptFailure | null;
  readonly head: ResponseHead | null;
  /** What the bytes that arrived say about tokens; null when no byte arrived. */
  readonly usage: Usage | null;
  readonly responseBytes: number;
  readonly durationMs: number;
}
