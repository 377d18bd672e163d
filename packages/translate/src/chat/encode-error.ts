import type { ErrorKind, NeutralError } from "../neutral/neutral-error.ts";

const TYPES: Readonly<Record<ErrorKind, string>> = {
  invalid_request: "invalid_request_error",
  authentication: "authentication_error",
  billing: "insufficient_quota",
  permission: "permission_error",
  not_found: "not_found_error",
  too_large: "invalid_request_error",
  rate_limit: "rate_limit_error",
  server: "server_error",
  overloaded: "server_error",
  timeout: "timeout_error",
};

/** OpenAI's error body, which chat completions and responses share. */
export function encodeOpenAiError(error: NeutralError): Record<string, unknown> {
  return {
    error: {
      message: error.message,
      type: error.type ?? TYPES[error.kind],
      param: error.param ?? null,
      code: error.code ?? (error.kind === "rate_limit" ? "rate_limit_exceeded" : null),
    },
  };
}
