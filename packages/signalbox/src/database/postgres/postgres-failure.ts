/** Failures of PostgreSQL that pass by themselves: it restarts, cannot be reached, or has no room. */
import { SignalboxError } from "@signalbox/protocol";

/** Classes 08 (connection) and 53 (no room, no memory, too many connections), and single codes of a server that comes or goes. */
const CLASSES = ["08", "53"];
const CODES: ReadonlySet<string> = new Set([
  "57P01", // it is told to stop
  "57P02", // it crashed
  "57P03", // it starts, stops or recovers
  "57P05", // it ended an idle session
  "25P03", // it ended a session that was idle in a transaction
  "25006", // it is a standby: a failover is under way
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
/** The driver's own words for a connection that is gone or did not come about; they carry no code. */
const TEXTS = /^(Connection terminated|Client has encountered a connection error|Client was closed)|timeout/;

/** How many seconds a client that was turned away should wait. */
const RETRY_AFTER = { "retry-after": "5" };

export function isUnavailable(error: unknown): error is Error {
  if (!(error instanceof Error)) return false;
  const { code } = error as { readonly code?: unknown };
  if (typeof code !== "string") return TEXTS.test(error.message);
  return CODES.has(code) || CLASSES.some((prefix) => code.length === 5 && code.startsWith(prefix));
}

/** The server answered a COMMIT with a plain error: the transaction is gone, and so is every doubt. FATAL ones end the session and leave doubts. */
export function isPlainRefusal(error: unknown): boolean {
  return (error as { readonly severity?: unknown }).severity === "ERROR";
}

/** In words for operators, without addresses: whoever may ask for readiness need not know them. */
export function problemOf(error: Error): string {
  const { code } = error as { readonly code?: string };
  if (code === "53100") return "PostgreSQL's disk is full";
  if (code === "53300") return "PostgreSQL has no connection left";
  return "PostgreSQL cannot be reached";
}

/** What clients are told of a failure that passes; any other one is given back as it is. */
export function explainFailure(error: unknown): unknown {
  if (!isUnavailable(error)) return error;
  return new SignalboxError("storage_unavailable", {
    message: `Storage is unavailable, nothing was written: ${problemOf(error)}`,
    headers: RETRY_AFTER,
    cause: error,
  });
}
