/**
 * An outgoing webhook in the durable queue. Its id is chosen when it is queued and is the same in every attempt, so that the receiver can
 * drop duplicates. The queue stores the name of the variable that holds the secret, not the secret.
 */
import type { OutgoingSender } from "../../outgoing/index.ts";
import { newWebhookId } from "../../outgoing/index.ts";
import type { RetryOptions } from "./retry-options.ts";

/** The callback of these queue items. */
export const QUEUED_WEBHOOK = "signalbox:webhook";

/** A receiver that restarts is back within a minute; a longer outage needs an operator. */
export const DEFAULT_WEBHOOK_RETRY: RetryOptions = { maxAttempts: 6, baseDelayMs: 1000, maxDelayMs: 60_000 };

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
