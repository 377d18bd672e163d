/**
 * Decides what follows a failed attempt. A pure function: the loop in `call.ts` supplies the facts and carries the decision out.
 *
 * In this order:
 * 1. A body that was streamed cannot be sent again, so the call ends.
 * 2. Another key of the same target, when the key was at fault. The number of keys bounds it, not the number of attempts.
 * 3. The same target again, after a transient failure, while attempts remain, unless a rule forbids it:
 *    a. a target that stayed silent, or reported an error inside a success, is not tried again while another step exists;
 *    b. a target whose circuit is open is not tried again while another step exists;
 *    c. a provider that asks for a longer wait than the caller allows is not tried again.
 * 4. The next step, if the step's `fallbackOn` includes the failure.
 * 5. The end: the client gets the response of this attempt, or an error if there was none.
 */
import type { AttemptPolicy } from "../step/attempt-policy.ts";
import type { RequestType } from "../step/step.ts";
import { allowsFallback, type AttemptFailure, isTransient } from "./attempt-failure.ts";
import { backoffBefore } from "./retry-wait.ts";

export type NextMove =
  | { readonly kind: "retry"; readonly delayMs: number }
  | { readonly kind: "next_step" }
  | { readonly kind: "end" };

export interface FailedAttempt {
  readonly failure: AttemptFailure;
  readonly policy: AttemptPolicy;
  /** 1 for the first attempt of its step. */
  readonly attempt: number;
  readonly canResend: boolean;
  readonly hasOtherKey: boolean;
  readonly hasOtherStep: boolean;
  readonly isCircuitOpen: boolean;
  /** In [0, 1). */
  readonly random: number;
}

const END: NextMove = { kind: "end" };
const NEXT_STEP: NextMove = { kind: "next_step" };

export function nextMove(failed: FailedAttempt): NextMove {
  const { failure, policy, attempt } = failed;
  if (!failed.canResend) return END;
  if (failed.hasOtherKey) return { kind: "retry", delayMs: 0 };
  if (attempt < policy.maxAttempts && isTransient(failure) && !mustMoveOn(failed)) {
    return {
      kind: "retry",
      delayMs: failure.retryAfterMs ?? backoffBefore(attempt + 1, policy, failed.random),
    };
  }
  return failed.hasOtherStep && allowsFallback(failure, policy.fallbackOn) ? NEXT_STEP : END;
}

const HEDGED: ReadonlySet<RequestType> = new Set(["chat", "messages", "responses", "generate_content"]);

/** Whether two calls of this type at once cost money and nothing else; others may have effects. */
export function mayHedge(type: RequestType): boolean {
  return HEDGED.has(type);
}

function mustMoveOn({ failure, policy, hasOtherStep, isCircuitOpen }: FailedAttempt): boolean {
  if (failure.retryAfterMs !== null && failure.retryAfterMs > policy.maxRetryWaitMs) return true;
  return hasOtherStep && (isCircuitOpen || failure.kind === "timeout" || failure.kind === "in_band");
}
