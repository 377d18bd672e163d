/**
 * An outgoing webhook in the durable queue. Its id is chosen when it is queued and is the same in every attempt, so that the receiver can
 * drop duplicates. The queue stores the name of the variable that holds the secret, not the secret.
 */
import { newWebhookId, type OutgoingSender, OutgoingWebhookError } from "../../outgoing/index.ts";
import type { RetryOptions, RetryPlan } from "./retry-options.ts";

/** The callback of these queue items. */
export const QUEUED_WEBHOOK = "signalbox:webhook";

const SECOND_MS = 1000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Eight attempts in about 27.6 hours: a receiver may be repaired on the next day. The delays are those of other senders of webhooks. */
const DELAYS_MS = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  10 * HOUR_MS,
];

/** For a caller that sets a bound of the delays itself. */
const BOUNDED = { maxAttempts: 6, baseDelayMs: SECOND_MS, maxDelayMs: MINUTE_MS };

/** The attempts of a webhook. `maxAttempts` alone keeps the delays; a bound of the delays replaces them by growing random ones. */
export function webhookRetry(given: RetryOptions = {}): RetryPlan {
  const hasBounds = given.baseDelayMs !== undefined || given.maxDelayMs !== undefined;
  return hasBounds
    ? { ...BOUNDED, ...given }
    : { maxAttempts: DELAYS_MS.length + 1, ...given, delaysMs: DELAYS_MS };
}

/** What the receiver's answer means for the next attempt. An answer that cannot change ends the attempts. */
export function adviseRetry(error: unknown): { readonly isFinal: boolean; readonly notBeforeMs: number } {
  if (!(error instanceof OutgoingWebhookError)) return { isFinal: false, notBeforeMs: 0 };
  return { isFinal: !error.retryable, notBeforeMs: error.retryAfterMs ?? 0 };
}

export interface QueuedWebhookOptions {
  /** Environment variable that holds the secret; read at each attempt. */
  readonly secretVariable?: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Delivery id. Default: a new id. */
  readonly id?: string;
  readonly timeoutMs?: number;
  readonly retry?: RetryOptions;
}

export interface QueuedWebhook {
  readonly url: string;
  readonly body: string;
  readonly id: string;
  readonly secretVariable?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
}

export function toQueuedWebhook(
  url: string,
  payload: unknown,
  options: QueuedWebhookOptions,
  now: number,
): QueuedWebhook {
  const { secretVariable, headers, timeoutMs } = options;
  const id = options.id ?? newWebhookId(now);
  return { url, body: JSON.stringify(payload ?? null), id, secretVariable, headers, timeoutMs };
}

export async function sendQueuedWebhook(
  outgoing: OutgoingSender,
  variables: Readonly<Record<string, string | undefined>>,
  webhook: QueuedWebhook,
): Promise<void> {
  const { secretVariable, ...rest } = webhook;
  const secret = secretVariable === undefined ? undefined : variables[secretVariable];
  if (secretVariable !== undefined && (secret === undefined || secret === "")) {
    throw new Error(`the webhook cannot be signed: ${secretVariable} is not set`);
  }
  await outgoing.send({ ...rest, secret });
}
