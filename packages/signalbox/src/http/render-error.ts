/**
 * Renders errors. Areas throw a `SignalboxError`; the area of the request determines the format. Any other error is sent as `internal` with a
 * fixed text, and only the log contains its cause.
 */
import { ERROR_TABLE, type ErrorEntry, SignalboxError } from "@signalbox/protocol";
import { type HttpResponse, STATUS_CODES } from "../engines/http-server/index.ts";
import { INERT_HEADERS } from "./foreign-answer.ts";

/**
 * `envelope`: management, webhooks and agents. `run`: calls of models that answer in the envelope. `gateway`: the format that gateway clients expect. `openai`, `anthropic` and
 * `gemini`: what the SDKs of these providers read.
 */
export type ErrorDialect = "envelope" | "run" | "gateway" | "openai" | "anthropic" | "gemini";

export interface RenderedError {
  readonly status: number;
  readonly headers: Record<string, string>;
  readonly body: string;
}

/** The hosted original has another status for this error at `ai/run` than at its other doors, and clients tell it by the status. */
const RUN_BLOCKED = 422;

export function toSignalboxError(error: unknown): SignalboxError {
  return error instanceof SignalboxError ? error : new SignalboxError("internal", { cause: error });
}

export function renderError(error: SignalboxError, dialect: ErrorDialect, requestId: string): RenderedError {
  const body = BODIES[dialect](error, requestId);
  return {
    status: dialect === "run" && error.id === "gateway_response_blocked" ? RUN_BLOCKED : error.status,
    headers: {
      ...(dialect in SDK_DIALECTS ? headersForSdk(error) : error.headers),
      "content-type": "application/json; charset=utf-8",
      "cache-control": "no-store",
      "x-content-type-options": "nosniff",
      ...(dialect === "envelope" ? {} : { "gw-aig-error-origin": "gateway" }),
    },
    body: JSON.stringify(body),
  };
}

/** Sends the error. If the response has begun, closes the connection instead, so that the client detects the incomplete response. */
export function sendError(response: HttpResponse, rendered: RenderedError): void {
  if (response.headersSent || response.writableEnded) {
    response.destroy();
    return;
  }
  for (const name of response.getHeaderNames()) response.removeHeader(name);
  // A failed call of `writeHead` may have set it.
  response.statusMessage = "";
  response.writeHead(rendered.status, {
    ...rendered.headers,
    "content-length": Buffer.byteLength(rendered.body),
  });
  response.end(rendered.body);
}

/** Returns the response as text, for sockets without a response object (malformed HTTP, refused upgrades). */
export function rawErrorResponse(error: SignalboxError, dialect: ErrorDialect, requestId: string): string {
  const { status, headers, body } = renderError(error, dialect, requestId);
  const lines = Object.entries({
    ...headers,
    ...INERT_HEADERS,
    "content-length": String(Buffer.byteLength(body)),
    "x-request-id": requestId,
    connection: "close",
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ""}\r\n${lines.join("")}\r\n${body}`;
}

/** Returns the WebSocket close code for an error. Clients reconnect after all codes except 1008 and 4000–4999. */
export function closeCodeOf(error: SignalboxError): { code: number; reason: string } {
  const entry: ErrorEntry = ERROR_TABLE[error.id];
  return { code: entry.closeCode ?? 1011, reason: error.message };
}

const SDK_DIALECTS: Readonly<Partial<Record<ErrorDialect, true>>> = {
  openai: true,
  anthropic: true,
  gemini: true,
};
/** Of Anthropic's SDK, which ignores a longer `retry-after`. */
const LONGEST_WAIT_S = 60;

/**
 * Programs on these SDKs sleep for as long as `retry-after` says, without a word, be it until the end of the month, or ignore it and repeat the
 * call at once. Claude Code repeats a call with a wrong token ten times. See
 * [decision 0470](../../../../docs/decisions/0470-a-long-wait-is-a-refusal-at-the-doors-of-sdks.md).
 */
function headersForSdk({ id, headers, status }: SignalboxError): SignalboxError["headers"] {
  const { "retry-after": wait, ...rest } = headers;
  const isLong = wait !== undefined && Number(wait) > LONGEST_WAIT_S;
  if (!isLong && status !== 401) return headers;
  // The contract promises the time of a rate limit to every client.
  return { ...(id === "gateway_rate_limited" ? headers : rest), "x-should-retry": "false" };
}

const BODIES: Readonly<Record<ErrorDialect, (error: SignalboxError, requestId: string) => object>> = {
  envelope: envelopeBody,
  run: envelopeBody,
  gateway: gatewayBody,
  openai: ({ message, param, reason, code }) => ({
    error: { message, type: "gateway_error", param, code: reason ?? String(code) },
  }),
  anthropic: ({ message, status, reason, code }, requestId) => ({
    type: "error",
    error: { type: anthropicType(status), message, code: reason ?? String(code) },
    request_id: requestId,
  }),
  gemini: ({ message, status, reason, code, headers }) => ({
    error: {
      code: status,
      message,
      status: googleStatus(status),
      details: [
        {
          "@type": "type.googleapis.com/google.rpc.ErrorInfo",
          reason: reason ?? String(code),
          domain: "signalbox",
        },
        // Google's clients read the time here, whole: Gemini CLI gives up if it is more than five minutes.
        ...(headers["retry-after"] === undefined
          ? []
          : [
              {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                retryDelay: `${headers["retry-after"]}s`,
              },
            ]),
      ],
    },
  }),
};

/** Google's clients decide by the name of the status whether to try again. */
function googleStatus(status: number): string {
  switch (status) {
    case 401:
      return "UNAUTHENTICATED";
    case 403:
      return "PERMISSION_DENIED";
    case 404:
      return "NOT_FOUND";
    case 429:
      return "RESOURCE_EXHAUSTED";
    case 502:
    case 503:
      return "UNAVAILABLE";
    case 504:
      return "DEADLINE_EXCEEDED";
    default:
      return status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
  }
}

/** Anthropic's SDK and Claude Code decide by the type whether to try again. */
function anthropicType(status: number): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 403:
      return "permission_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

function envelopeBody(error: SignalboxError, requestId: string): object {
  return {
    success: false,
    errors: [{ code: error.code, message: error.message }],
    // A delivery that the server sends to itself has no id.
    messages: error.id === "internal" && requestId !== "" ? [`request id: ${requestId}`] : [],
    result: null,
  };
}

function gatewayBody(error: SignalboxError): object {
  return {
    success: false,
    result: [],
    messages: [],
    error: [{ code: error.code, message: error.message }],
    name: "AiGatewayError",
    httpCode: error.status,
    internalCode: error.code,
    message: error.message,
    ...error.fields,
  };
}
