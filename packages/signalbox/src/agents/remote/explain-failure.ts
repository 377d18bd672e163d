/** What the failure of work that was sent to another node means: for `Placement.reach`, which may try again, and for the caller. */
import { SignalboxError } from "@signalbox/protocol";
import { InstanceElsewhereError, InstanceFencedError } from "../../engines/instance-store/index.ts";
import { LinkError } from "../../engines/node-link/index.ts";
import { NotSentError } from "../placement/placement.ts";

/**
 * Work that `isRepeatable` has the same effect if it is run twice: a delivery, which the ledger of the instance recognises, or a request that only reads.
 * Any other work is tried again only if it was not run.
 */
export function explainFailure(error: unknown, isRepeatable: boolean): unknown {
  if (error instanceof LinkError) return explainLink(error, isRepeatable);
  if (error instanceof InstanceElsewhereError) return error;
  // The work had begun: what it wrote before may be durable. Agents' code that called the instance must not mistake the error for a fence of its own.
  if (error instanceof InstanceFencedError) return isRepeatable ? notRun(error) : outcomeUnknown(error);
  // An instance that leaves finishes its running turns, and refuses those that wait.
  if (error instanceof SignalboxError && error.id === "stopping") return notRun(error);
  return error;
}

function explainLink(error: LinkError, isRepeatable: boolean): unknown {
  // A node that has not started all of its services yet, or is of an older version, does not know the message.
  if (error.isUnsent || error.code === "unknown") return notRun(error);
  if (error.code === "too_large")
    return new SignalboxError("body_too_large", {
      message: "The request is too large to be passed to the node that runs the instance",
      cause: error,
    });
  if (error.code === "answer_too_large")
    return new SignalboxError("agent_failed", {
      message: "The result is too large to be passed to the node of the caller",
      cause: error,
    });
  if (error.code === "broken" || error.code === "cancelled")
    return isRepeatable ? notRun(error) : outcomeUnknown(error);
  return new SignalboxError("internal", { cause: error });
}

function notRun(cause: Error): NotSentError {
  return new NotSentError(cause.message, { cause });
}

/** The error of work whose client has gone: no one reads it, and it is not worth a line in the log. */
export function clientGone(cause: unknown): SignalboxError {
  return new SignalboxError("malformed_http", { message: "The client disconnected", cause });
}

/** Without `Retry-After`, which tells common clients to repeat the request: it may have been carried out. */
export function outcomeUnknown(cause: unknown): SignalboxError {
  return new SignalboxError("agent_outcome_unknown", { cause });
}
