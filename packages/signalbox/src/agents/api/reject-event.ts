/**
 * Thrown by `onEvent` to refuse an event permanently: the sender receives 400 with the message and should not send the event again. What
 * the handler has written since its last await is rolled back, and the event counts as not seen.
 *
 * An error with a `status` is not enough: clients of other services throw such errors, and a 404 from another service must not make a sender
 * discard its event.
 * See agents/README.md.
 */
import { SignalboxError } from "@signalbox/protocol";

/** A registered symbol: the error may come from another copy of this module. */
const REJECTION = Symbol.for("signalbox.reject-event");

export class RejectEvent extends Error {
  override readonly name = "RejectEvent";
  readonly [REJECTION] = true;
}

/** The error of `onEvent` as the caller receives it. */
export function explainRejection(error: unknown): unknown {
  const isRejection = error instanceof Error && (error as { [REJECTION]?: true })[REJECTION] === true;
  if (!isRejection) return error;
  return new SignalboxError("webhook_rejected", {
    cause: error,
    ...(error.message === "" ? {} : { message: error.message }),
  });
}
