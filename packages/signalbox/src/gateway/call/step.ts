/** One way to answer a call: a provider and what to send it. A plain call has one step, the universal endpoint several. */
import type { Provider } from "../providers/provider.ts";
import type { Backoff } from "../settings/gateway-settings.ts";
import type { UpstreamRequest } from "../../engines/relay/index.ts";
import type { BodyFacts } from "./inspect-body.ts";
import type { RequestType } from "./request-type.ts";

export interface Step {
  readonly provider: Provider;
  /** After the provider segment, without the query. */
  readonly path: string;
  readonly requestType: RequestType;
  /** As the request names it; empty when only the response does. */
  readonly model: string;
  readonly facts: BodyFacts;
  readonly upstream: UpstreamRequest;
  readonly policy: AttemptPolicy;
}

export interface AttemptPolicy {
  /** Until the response's first byte; null leaves it to the service's own limit. */
  readonly requestTimeoutMs: number | null;
  readonly maxAttempts: number;
  readonly retryDelayMs: number;
  readonly backoff: Backoff;
}

/** Wait before attempt `next` (2 is the first retry). */
export function delayBefore(next: number, policy: AttemptPolicy): number {
  const retries = next - 1;
  switch (policy.backoff) {
    case "constant":
      return policy.retryDelayMs;
    case "linear":
      return policy.retryDelayMs * retries;
    case "exponential":
      return policy.retryDelayMs * 2 ** (retries - 1);
  }
}

/** Statuses that another attempt may change: the provider was busy, timed out or failed. */
export function isRetryableStatus(status: number): boolean {
  return status === 408 || status === 429 || status >= 500;
}
