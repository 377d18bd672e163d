import type { ErrorKind, NeutralError } from "../neutral/neutral-error.ts";

const TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: "invalid_request_error",
  authentication: "authentication_error",
  billing: "billing_error",
  permission: "permission_error",
  not_found: "not_found_error",
  too_large: "request_too_large",
  rate_limit: "rate_limit_error",
  server: "api_error",
  overloaded: "overloaded_error",
  timeout: "timeout_error",
};

/** This dialect has no field for a code, so `error.type` is always one of its own: clients decide by it. */
export function encodeMessagesError(error: NeutralError): Record<string, unknown> {
  return {
    type: "error",
    error: { type: TYPES[error.kind], message: error.message },
    request_id: error.requestId ?? null,
  };
}
