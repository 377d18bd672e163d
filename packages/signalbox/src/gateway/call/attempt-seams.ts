/**
 * What other parts of the gateway add to an attempt. The loop (`call.ts`) calls them at these points, and at no other:
 *
 *   step chosen → `CallAccount.admit` → `KeyPool.pick` → request sent → response ─┬─ failed: `KeyPool.report`, `AttemptReport`
 *                                                    (`DoorStep.convert`: both)     └─ answer: `KeyPool.report`
 */
import type { ResponseHead, Usage } from "../../engines/relay/index.ts";
import type { SignalboxError } from "@signalbox/protocol";
import type { Delay } from "../step/delay.ts";
import type { Step } from "../plan/plan-step.ts";
import type { AttemptFailure } from "../reliability/attempt-failure.ts";

/** Steps that are determined only when they are needed: the fallback of a dynamic route. */
export interface StepSource {
  /** Whether `next` may return a step. */
  readonly mayHaveNext: boolean;
  /** The step that follows the failed one; null at the end of the route. After a delay it is called again. */
  next(): Step | Delay | null;
  /** Why the route ended; null when it has not, or by no limit. */
  readonly refusal: SignalboxError | null;
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
  /** `performance.now()` when it was sent. */
  readonly startedAt: number;
}
