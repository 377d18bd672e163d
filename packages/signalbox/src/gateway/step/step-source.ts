import type { SignalboxError } from "@signalbox/protocol";
import type { Step } from "./step.ts";

/** Steps that are determined only when they are needed: the fallback of a dynamic route. */
export interface StepSource {
  /** Whether `next` may return a step. */
  readonly mayHaveNext: boolean;
  /** The step that follows the failed one; null at the end of the route. A promise, if nodes share a limit on the way, that never rejects. */
  next(): Step | null | Promise<Step | null>;
  /** Why the route ended; null when it has not, or by no limit. */
  readonly refusal: SignalboxError | null;
}
