/** An outgoing webhook failed. */
export class OutgoingWebhookError extends Error {
  override readonly name = "OutgoingWebhookError";
  /** The receiver's HTTP status; null when no response arrived. */
  readonly status: number | null;
  /** True when the same delivery may succeed later. A 4xx status other than 408, 409, 425 and 429 is final. */
  readonly retryable: boolean;
  /** How long the receiver asked to wait (`Retry-After`), at most a day; null when it did not. */
  readonly retryAfterMs: number | null;

  constructor(
    message: string,
    details: {
      status?: number | null;
      retryable: boolean;
      retryAfterMs?: number | null;
      cause?: unknown;
    },
  ) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.status = details.status ?? null;
    this.retryable = details.retryable;
    this.retryAfterMs = details.retryAfterMs ?? null;
  }
}

const RETRYABLE_CLIENT_ERRORS: ReadonlySet<number> = new Set([408, 409, 425, 429]);

export function isRetryableStatus(status: number): boolean {
  return status >= 500 || RETRYABLE_CLIENT_ERRORS.has(status);
}

/** A receiver that asks for more is asked again after a day. */
const MAX_RETRY_AFTER_MS = 24 * 60 * 60 * 1000;

/** The value of `Retry-After` (RFC 9110, section 10.2.3): seconds, or a date. Null for none, and for a value of another form. */
export function parseRetryAfter(value: string | undefined, now: number): number | null {
  if (value === undefined) return null;
  const text = value.trim();
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), MAX_RETRY_AFTER_MS);
}
