/** Sends signed webhooks to URLs that agents choose. `send` resolves for a 2xx response only; everything else rejects with `OutgoingWebhookError`. */
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import { OutgoingRequests, type OutgoingRequestsOptions } from "./outgoing-requests.ts";
import { isRetryableStatus, OutgoingWebhookError, parseRetryAfter } from "./outgoing-webhook-error.ts";
import { signOutgoing } from "./sign-outgoing.ts";

/** Well-known senders allow 3 to 30 s; here the turn of an agent waits for the response. */
const DEFAULT_TIMEOUT_MS = 10_000;

export interface OutgoingWebhook {
  readonly url: string;
  /** Serialised by the caller, so that the signed bytes are the sent ones. */
  readonly body: string;
  readonly secret?: string | undefined;
  /** Delivery id; must not change between retries, so that receivers can detect duplicates. Default: a new one. */
  readonly id?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface OutgoingSender {
  send(webhook: OutgoingWebhook): Promise<{ readonly id: string; readonly status: number }>;
}

export interface OutgoingOptions extends OutgoingRequestsOptions {
  readonly clock: Clock;
}

export function newWebhookId(now: number): string {
  return `msg_${ulid(now)}`;
}

export class OutgoingWebhooks implements OutgoingSender {
  readonly #clock: Clock;
  /** For requests of another form. */
  readonly requests: OutgoingRequests;

  constructor(options: OutgoingOptions) {
    this.#clock = options.clock;
    this.requests = new OutgoingRequests(options);
  }

  async send(webhook: OutgoingWebhook): Promise<{ id: string; status: number }> {
    const time = this.#clock.now();
    const id = webhook.id ?? newWebhookId(time);
    const { status, headers } = await this.requests.send({
      url: webhook.url,
      method: "POST",
      body: webhook.body,
      timeoutMs: webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS,
      signal: webhook.signal,
      headers: {
        "user-agent": "signalbox",
        ...webhook.headers,
        "content-type": "application/json",
        "content-length": String(Buffer.byteLength(webhook.body)),
        ...signOutgoing({ id, time, body: webhook.body, secret: webhook.secret }),
      },
    });
    if (status < 200 || status > 299) {
      throw new OutgoingWebhookError(`the receiver responded with status ${status}`, {
        status,
        retryable: isRetryableStatus(status),
        retryAfterMs: parseRetryAfter(headers["retry-after"], this.#clock.now()),
      });
    }
    return { id, status };
  }

  close(): void {
    this.requests.close();
  }
}
