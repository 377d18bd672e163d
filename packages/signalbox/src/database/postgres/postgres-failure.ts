/** Transient errors of PostgreSQL: it restarts, cannot be reached, or has no free disk space, memory or connections. */
import { SignalboxError } from "@signalbox/protocol";

/** Error classes: 08 (connection) and 53 (insufficient resources). */
const CLASSES = ["08", "53"];
const CODES: ReadonlySet<string> = new Set([
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout
  "25P03", // idle_in_transaction_session_timeout
  "25006", // read_only_sql_transaction: a standby, during a failover
  "ECONNREFUSED",
  "ECONNRESET",
  "ECONNABORTED",
  "EPIPE",
  "ETIMEDOUT",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
]);
/** Messages of the driver for failed connections, which have no code. */
const TEXTS = /^(Connection terminated|Client has encountered a connection error|Client was closed)|timeout/;

/** Seconds after which a client should retry. */
const RETRY_AFTER = { "retry-after": "5" };

export function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== "string") return TEXTS.test(error.message);
  return CODES.has(code) || CLASSES.some((prefix) => code.length === 5 && code.startsWith(prefix));
}

/** The server responds, but has no disk space, memory or connection for the statement. */
export function hasNoRoom(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return typeof code === "string" && code.length === 5 && code.startsWith("53");
}

/** Two nodes waited for each other's rows, and the server has rolled one of the transactions back: it can be repeated. */
export function isConflict(error: unknown): boolean {
  const { code } = error as { readonly code?: unknown };
  return code === "40P01" || code === "40001";
}

/** True if the server responded to COMMIT with severity ERROR: the transaction was rolled back. After FATAL the outcome is unknown. */
export function isServerError(error: unknown): boolean {
  return (error as { readonly severity?: unknown }).severity === "ERROR";
}

/** The problem as text for `/readyz`, without addresses: readers of `/readyz` need no token. */
export function problemOf(error: Error): string {
  const { code } = error as { readonly code?: string };
  if (code === "53100") return "PostgreSQL's disk is full";
  if (code === "53300") return "PostgreSQL has no connection left";
  return "PostgreSQL cannot be reached";
}

/** Converts a transient error to `storage_unavailable`; returns any other error unchanged. */
export function toClientError(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  return new SignalboxError("storage_unavailable", {
    message: `Storage is unavailable, nothing was written: ${problemOf(error)}`,
    headers: RETRY_AFTER,
    cause: error,
  });
}
