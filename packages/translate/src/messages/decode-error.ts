import { errorKindOf, looseMessage } from "../error-kind.ts";
import { isRecord, textOrNull } from "../json.ts";
import type { ErrorKind, NeutralError } from "../neutral/neutral-error.ts";

const KINDS: Readonly<Record<string, ErrorKind>> = {
  invalid_request_error: "invalid_request",
  authentication_error: "authentication",
  billing_error: "billing",
  permission_error: "permission",
  not_found_error: "not_found",
  request_too_large: "too_large",
  rate_limit_error: "rate_limit",
  api_error: "server",
  overloaded_error: "overloaded",
  timeout_error: "timeout",
};

/** Statuses of errors that arrive inside a stream, where the HTTP status was 200. */
const STATUSES: Readonly<Record<ErrorKind, number>> = {
  invalid_request: 400,
  authentication: 401,
  billing: 402,
  permission: 403,
  not_found: 404,
  too_large: 413,
  rate_limit: 429,
  server: 500,
  overloaded: 529,
  timeout: 504,
};

export function decodeMessagesError(status: number, body: unknown): NeutralError {
  const error = isRecord(body) ? body["error"] : undefined;
  const message = isRecord(error) ? textOrNull(error["message"]) : null;
  if (!isRecord(body) || !isRecord(error) || message === null) {
    return { status, kind: errorKindOf(status), message: looseMessage(status, body) };
  }
  const type = textOrNull(error["type"]) ?? "";
  const kind = Object.hasOwn(KINDS, type) ? (KINDS[type] ?? "server") : errorKindOf(status);
  return {
    status: status >= 400 ? status : STATUSES[kind],
    kind,
    message,
    requestId: textOrNull(body["request_id"]),
  };
}
