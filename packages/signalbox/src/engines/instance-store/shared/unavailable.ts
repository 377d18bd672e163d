/** Errors of PostgreSQL for callers: a server that cannot be reached is a reason to try again. */
import { SignalboxError } from "@signalbox/protocol";

/** Error classes: connection, resources, intervention by an operator, conflicts of transactions. */
const CLASSES = ["08", "53", "57", "40"];
/** The server is a standby; another transaction holds a lock for long. */
const CODES: ReadonlySet<string> = new Set(["25006", "55P03"]);
/** Wrong credentials, no such database. */
const MISTAKES = ["28", "3D"];
const NETWORK = /^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_)/;
/** The driver's messages for failed connections have no code. */
const TEXTS = /^(Connection terminated|Client has encountered a connection error|Client was closed)|timeout/;

export function isUnavailable(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  if (typeof code !== "string") return TEXTS.test(error.message);
  const isOfClass = (prefix: string) => code.startsWith(prefix);
  // The server has ended the session, or accepts none.
  if (severity === "FATAL") return !MISTAKES.some(isOfClass);
  return NETWORK.test(code) || CODES.has(code) || CLASSES.some(isOfClass);
}

export function toClientError(error: unknown): unknown {
  if (error instanceof SignalboxError || !isUnavailable(error)) return error;
  return new SignalboxError("storage_unavailable", {
    message: "Storage is unavailable, nothing was written: PostgreSQL cannot be reached",
    headers: { "retry-after": "5" },
    cause: error,
  });
}
