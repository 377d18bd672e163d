/** Errors of PostgreSQL as clients and operators see them. */
import { SignalboxError } from "@signalbox/protocol";
import { isLocked, isUnavailable } from "../../engines/postgres-session/index.ts";

/** Seconds after which a client should retry. */
const RETRY_AFTER = { "retry-after": "5" };
/** The lock is free again when its transaction ends, which is soon. */
const RETRY_LOCK_AFTER = { "retry-after": "1" };

/** The problem as text for `/readyz`, without addresses: readers of `/readyz` need no token. */
export function problemOf(error: Error): string {
  const { code } = error as { readonly code?: string };
  if (code === "53100") return "PostgreSQL's disk is full";
  if (code === "53300") return "PostgreSQL has no connection left";
  return "PostgreSQL cannot be reached";
}

/** Converts a transient error to `storage_unavailable`; returns any other error unchanged. */
export function toClientError(error: unknown): unknown {
  if (isLocked(error))
    return new SignalboxError("storage_unavailable", {
      message: "Nothing was written: another transaction holds a lock in PostgreSQL for too long",
      headers: RETRY_LOCK_AFTER,
      cause: error,
    });
  if (!isUnavailable(error)) return error;
  return new SignalboxError("storage_unavailable", {
    message: `Storage is unavailable, nothing was written: ${problemOf(error)}`,
    headers: RETRY_AFTER,
    cause: error,
  });
}
