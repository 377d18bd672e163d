/** What an error of PostgreSQL, or of the connection to it, says about the server and about the statement. */

/** Error classes: connection, resources, intervention by an operator or by a limit of time. */
const CLASSES = ["08", "53", "57"];
const CODES: ReadonlySet<string> = new Set([
  "25P03", // idle_in_transaction_session_timeout
  "25006", // read_only_sql_transaction: a standby, during a failover
  "57P01", // admin_shutdown
  "57P02", // crash_shutdown
  "57P03", // cannot_connect_now
  "57P05", // idle_session_timeout
]);
const NETWORK = /^E(CONN|PIPE|TIMEDOUT|HOST|NET|NOTFOUND|AI_)/;
/** Wrong credentials, no such database, no permission, a setting that the server does not know. */
const MISTAKES = ["22", "28", "3D", "42"];
/** Messages of the driver for failed connections, which have no code. */
const LOST = /^(Connection terminated|Client has encountered a connection error|Client was closed)/;
const TIMEOUT = /timeout/;
/** query_canceled: by `statement_timeout`, or by an administrator. */
const CANCELLED = "57014";
/** lock_not_available: by `lock_timeout`, or by NOWAIT. */
const LOCK_NOT_AVAILABLE = "55P03";

interface PostgresError extends Error {
  readonly code?: unknown;
  readonly severity?: unknown;
}

/** True if the server cannot be used at the moment: it restarts, cannot be reached, is a standby, or has no disk space, memory or connection left. */
export function isUnavailable(error: unknown): error is Error {
  return error instanceof Error && (isLost(error) || isTimeout(error) || isOfClass(error, CLASSES));
}

/** True if the connection is gone. A statement that was not a commit had no effect, and its transaction has none. */
export function isLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const { code, severity } = error as PostgresError;
  if (typeof code !== "string") return LOST.test(error.message);
  // The server has ended the session, or accepts none.
  if (severity === "FATAL") return !isOfClass(error, MISTAKES);
  return NETWORK.test(code) || CODES.has(code) || code.startsWith("08");
}

/** The server did not end the statement in time, or the driver did not wait any longer. */
export function isTimeout(error: unknown): boolean {
  const { code, message } = error as PostgresError;
  return typeof code === "string" ? code === CANCELLED : TIMEOUT.test(message);
}

/** The server responds, but has no disk space, memory or connection for the statement. */
export function hasNoRoom(error: unknown): boolean {
  return isOfClass(error, ["53"]);
}

/** Another transaction holds a lock that the statement needs. */
export function isLocked(error: unknown): boolean {
  return (error as PostgresError).code === LOCK_NOT_AVAILABLE;
}

/** Two nodes waited for each other's rows, and the server has rolled one of the transactions back: it can be repeated. */
export function isConflict(error: unknown): boolean {
  const { code } = error as PostgresError;
  return code === "40P01" || code === "40001";
}

/** True if the server has answered with an error of the statement: the transaction is rolled back. After any other error the outcome is unknown. */
export function isStatementError(error: unknown): boolean {
  return (error as PostgresError).severity === "ERROR";
}

function isOfClass(error: unknown, classes: readonly string[]): boolean {
  const { code } = error as PostgresError;
  return typeof code === "string" && code.length === 5 && classes.some((prefix) => code.startsWith(prefix));
}
