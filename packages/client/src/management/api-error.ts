import type { ErrorName } from "@signalbox/protocol";

export interface ApiErrorDetails {
  readonly status: number;
  readonly code: number;
  readonly id?: ErrorName | undefined;
  readonly message: string;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

/**
 * The service refused the request, or the request did not reach the service. `code` and `id` are the number and the name of the error in
 * the service's error table. If the response is not from Signalbox (a proxy's error page), `code` is 0 and `id` undefined; if there is
 * no response, `status` is 0 too.
 */
export class SignalboxApiError extends Error {
  override readonly name = "SignalboxApiError";
  readonly status: number;
  readonly code: number;
  readonly id: ErrorName | undefined;
  /** Identifies the request in the service's log. */
  readonly requestId: string | undefined;
  /** The delay of the `Retry-After` header. */
  readonly retryAfterMs: number | undefined;

  constructor({ status, code, id, message, requestId, retryAfterMs, cause }: ApiErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.id = id;
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}
