/** How the attempts of one step are made. */
import type { Backoff } from "../settings/gateway-settings.ts";

/** What the body of an error says about the request, as far as a fallback may depend on it. */
export type FailureReason = "context_length" | "content_filter";

/** Steps may name these in `fallbackOn`; a number is a status, `4xx` and `5xx` are ranges. */
export type FallbackCause = number | "4xx" | "5xx" | "timeout" | "connection" | "in_band" | FailureReason;

export interface AttemptPolicy {
  /** Until the first byte of the response; null leaves it to the service's own limit. */
  readonly requestTimeoutMs: number | null;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly backoff: Backoff;
  /** The longest wait that a provider may ask for before it is tried again. */
  readonly maxRetryWaitMs: number;
  /** Until the first content of a stream; null for no limit. */
  readonly firstTokenTimeoutMs: number | null;
  /** Between two reads of a response; null leaves it to the service's own limit. */
  readonly stallTimeoutMs: number | null;
  /** The response is held until it is complete, so that another step can replace a broken one. */
  readonly holdsResponse: boolean;
  /** Failures after which the next step is tried; null for all but a rejection of the content. */
  readonly fallbackOn: readonly FallbackCause[] | null;
  /** A second attempt runs beside one that has not answered after this time; null for none. */
  readonly hedgeAfterMs: number | null;
  /** Share of this step under the strategies `weighted` and `sticky`. */
  readonly weight: number;
}
