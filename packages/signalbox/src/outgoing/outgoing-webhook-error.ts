/** An outgoing webhook failed. */
export class OutgoingWebhookError extends Error {
  override readonly name = "OutgoingWebhookError";
  /** The receiver's HTTP status; null when no response arrived. */
  readonly status: number | null;
  /** True when the same delivery may succeed later. A 4xx status other than 408, 409, 425 and 429 is final. */
  readonly retryable: boolean;

  constructor(message: string, details: { status?: number | null; retryable: boolean; cause?: unknown }) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = details.status ?? null;
    this.retryable = details.retryable;
  }
}

const RETRYABLE_CLIENT_ERRORS: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE_CLIENT_ERRORS.has(status);
}
