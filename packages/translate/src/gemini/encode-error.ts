import type { ErrorKind, NeutralError } from "../neutral/neutral-error.ts";

const STATUSES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: "INVALID_ARGUMENT",
  authentication: "UNAUTHENTICATED",
  billing: "RESOURCE_EXHAUSTED",
  permission: "PERMISSION_DENIED",
  not_found: "NOT_FOUND",
  too_large: "INVALID_ARGUMENT",
  rate_limit: "RESOURCE_EXHAUSTED",
  server: "INTERNAL",
  overloaded: "UNAVAILABLE",
  timeout: "DEADLINE_EXCEEDED",
};

export function encodeGeminiError(error: NeutralError): Record<string, unknown> {
  return { error: { code: error.status, message: error.message, status: STATUSES[error.kind] } };
}
