/** Errors of PostgreSQL for callers: a server that cannot be reached is a reason to try again. */
import { SignalboxError } from "@signalbox/protocol";
import { isConflict, isLocked, isUnavailable } from "../../postgres-session/index.ts";

/** Also if another transaction was in the way: no caller waits for it. */
export function isPassing(error: unknown): boolean {
  return isUnavailable(error) || isLocked(error) || isConflict(error);
}

export function toClientError(error: unknown): unknown {
  if (error instanceof SignalboxError || !isPassing(error)) return error;
  return new SignalboxError("storage_unavailable", {
    message: "Storage is unavailable, nothing was written: PostgreSQL cannot be reached",
    headers: { "retry-after": "5" },
    cause: error,
  });
}
