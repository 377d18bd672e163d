/** Errors that callers of an instance receive from the runtime, not from the instance's code. */
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { Turn } from "../../engines/turn-runtime/index.ts";
import { isStorageFailure } from "../work/cut-off.ts";
import type { InstanceFailure } from "./leaving.ts";

export function createOverloadError(): SignalboxError {
  return overloaded("The instance has too many waiting events", { "retry-after": "1" });
}

export function createTimeoutError(timeoutMs: number): SignalboxError {
  return new SignalboxError("agent_turn_timeout", {
    message: `The turn took longer than ${timeoutMs} ms`,
  });
}

/** Callers see the messages of errors that agents' code throws; messages of storage name files, so they are hidden. */
export function throwInternal(cause: unknown): never {
  if (cause instanceof SignalboxError) throw cause;
  throw new SignalboxError("internal", { cause });
}

export function failureOf(error: unknown): InstanceFailure {
  return isStorageFailure(error) ? "storage" : "own";
}

/**
 * The error for the caller of a turn that failed after a part of it was stored. "Nothing was written" would be wrong then, and a caller that repeats the
 * call because of it would double that part. A delivery is recognised when it is repeated.
 */
export function explainPartial({ kind }: Turn, error: unknown): unknown {
  if (!isStorageFailure(error) || kind === "delivery") return error;
  return new SignalboxError("agent_outcome_unknown", {
    message:
      "The storage failed in the middle of the call; a part of it, or all of it, may have been carried out",
    cause: error,
  });
}

/** Why an instance ends whose storage failed: the caller may try again. */
export function createStorageError(cause: unknown): SignalboxError {
  if (cause instanceof SignalboxError) return cause;
  return new SignalboxError("overloaded", { message: "The instance's storage failed", cause });
}
