/**
 * Thrown by `onEvent` to refuse an event for good: the sender is answered 400 with the message and told by that not to send it again. Nothing the
 * handler has written since its last await stays, and the event counts as not seen.
 *
 * Not any error with a `status`: clients of other services throw such errors, and a 404 of theirs must not make a sender give up its event.
 */
import { SignalboxError } from "@signalbox/protocol";

/** Found whichever copy of the module the error came from. */
const REJECTION = Symbol.for("signalbox.reject-event");

export class RejectEvent extends Error {
  override readonly name = "RejectEvent";
  readonly [REJECTION] = true;
}

/** What a caller outside learns of an error of `onEvent`. */
export function explainRejection(error: unknown): unknown {
  const isRejection = error instanceof Error && (error as { [REJECTION]?: true })[REJECTION] === true;
  if (!isRejection) return error;
  return new SignalboxError("webhook_rejected", {
    cause: error,
    ...(error.message === "" ? {} : { message: error.message }),
  });
}
