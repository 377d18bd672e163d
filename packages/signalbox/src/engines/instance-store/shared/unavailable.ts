/** Errors of PostgreSQL for callers: a server that cannot be reached is a reason to try again. */
import { SignalboxError } from "@signalbox/protocol";

/** Error classes: connection, resources, intervention by an operator, conflicts of transactions. */
const CLASSES = ["08", "53", "57", "40"];
/** The server has ended a transaction whose client was silent; another transaction holds a lock for long. */
const CODES: ReadonlySet<string> = new Set(["25P03", "55P03"]);
const READ_ONLY = "25006";
const NETWORK = /^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_)/;
/** The driver's messages for failed connections have no code. */
const TEXTS = /^(Connection terminated|Client has encountered a connection error|Client was closed)|timeout/;

export function toClientError(error: unknown): unknown {
  if (error instanceof SignalboxError || !(error instanceof Error)) return error;
  const { code } = error as { readonly code?: unknown };
  const isUnavailable =
    typeof code === "string"
      ? NETWORK.test(code) || code === READ_ONLY || CODES.has(code) || CLASSES.some((prefix) => code.startsWith(prefix))
      : TEXTS.test(error.message);
  if (!isUnavailable) return error;
  return new SignalboxError("storage_unavailable", {
    message: "Storage is unavailable, nothing was written: PostgreSQL cannot be reached",
    headers: { "retry-after": "5" },
    cause: error,
  });
}
