import { ERROR_TABLE, type ErrorEntry, type ErrorName } from "@signalbox/protocol";

export interface ApiErrorDetails {
  readonly status: number;
  readonly code: number;
  readonly message: string;
  readonly requestId?: string | undefined;
  readonly retryAfterMs?: number | undefined;
  readonly cause?: unknown;
}

const NAMES: ReadonlyMap<number, ErrorName> = new Map(
  Object.entries(ERROR_TABLE).map(([name, entry]: [string, ErrorEntry]) => [entry.code, name as ErrorName]),
);

/**
 * A request that the service refused, or that did not reach it. `code` is the number of the service's error table, and `id` its name
 * there; both are 0 and undefined when something else answered (a proxy) or nobody did (then `status` is 0 too).
 */
export class SignalboxApiError extends Error {
  override readonly name = "SignalboxApiError";
  readonly status: number;
  readonly code: number;
  readonly id: ErrorName | undefined;
  /** To be quoted when asking the operator; it is in the service's log. */
  readonly requestId: string | undefined;
  /** What the service asked to wait, if it did. */
  readonly retryAfterMs: number | undefined;

  constructor({ status, code, message, requestId, retryAfterMs, cause }: ApiErrorDetails) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.id = NAMES.get(code);
    this.requestId = requestId;
    this.retryAfterMs = retryAfterMs;
  }
}
