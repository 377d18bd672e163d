/** Sessions with PostgreSQL: which server, with which limits, and what their errors mean. See README.md. */
export { connectPrimary, describeFailure, endClient } from "./connect-primary.ts";
export {
  hasNoRoom,
  isConflict,
  isLocked,
  isLost,
  isStatementError,
  isTimeout,
  isUnavailable,
} from "./failure.ts";
export { Servers } from "./servers.ts";
export { sessionConfig } from "./session-config.ts";
