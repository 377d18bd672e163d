/**
 * Sends signed webhooks to URLs that agents choose.
 *
 * Invariants:
 * 1. Unless private hosts are allowed, connections are opened to public addresses only (see `engines/ip-address`).
 * 2. Redirects are not followed, because a public receiver could redirect to a private address. A redirect is a failure.
 * 3. `send` resolves for a 2xx response only; everything else rejects with `OutgoingWebhookError`.
 * 4. A delivery ends within its time limit, and at most `MAX_RESPONSE_BYTES` of the response body are read.
 */
import { lookup as systemLookup } from "node:dns";
import type { Agent, IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as HttpsAgent } from "node:https";
import type { Clock } from "../core/clock.ts";
import { Agent as HttpAgent, request as httpRequest } from "../engines/http-server/index.ts";
import { createPublicLookup, isPrivateHost } from "../engines/ip-address/index.ts";
import { ulid } from "../core/ulid.ts";
import { isRetryableStatus, OutgoingWebhookError, parseRetryAfter } from "./outgoing-webhook-error.ts";
import { signOutgoing } from "./sign-outgoing.ts";

/** Well-known senders allow 3 to 30 s; here the turn of an agent waits for the response. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Enough to reuse the connection after a usual response; after a longer one the connection is closed. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_SOCKETS_PER_HOST = 32;

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

export interface OutgoingOptions {
  readonly allowPrivateHosts: boolean;
  readonly clock: Clock;
  /** Resolves host names; replaced in tests. */
  readonly lookup?: typeof systemLookup;
}

export function newWebhookId(now: number): string {
  return `msg_${ulid(now)}`;
}

interface Reply {
  readonly status: number;
  readonly retryAfter: string | undefined;
}

export class OutgoingWebhooks implements OutgoingSender {
  readonly #options: OutgoingOptions;
  readonly #http: Agent;
  readonly #https: HttpsAgent;

  constructor(options: OutgoingOptions) {
    this.#options = options;
    const agent = {
      keepAlive: true,
      maxSockets: MAX_SOCKETS_PER_HOST,
      lookup: options.allowPrivateHosts
        ? (options.lookup ?? systemLookup)
        : createPublicLookup(options.lookup ?? systemLookup, privateHost),
    };
    this.#http = new HttpAgent(agent);
    this.#https = new HttpsAgent(agent);
  }

  async send(webhook: OutgoingWebhook): Promise<{ id: string; status: number }> {
    const url = this.#parseUrl(webhook.url);
    const time = this.#options.clock.now();
    const id = webhook.id ?? newWebhookId(time);
    const headers = {
      "user-agent": "signalbox",
      ...webhook.headers,
      "content-type": "application/json",
      "content-length": String(Buffer.byteLength(webhook.body)),
      ...signOutgoing({ id, time, body: webhook.body, secret: webhook.secret }),
    };
    const { status, retryAfter } = await this.#post(url, headers, webhook);
    if (status < 200 || status > 299) {
      throw new OutgoingWebhookError(`the receiver responded with status ${status}`, {
        status,
        retryable: isRetryableStatus(status),
        retryAfterMs: parseRetryAfter(retryAfter, this.#options.clock.now()),
      });
    }
    return { id, status };
  }

  close(): void {
    this.#http.destroy();
    this.#https.destroy();
  }

  #parseUrl(text: string): URL {
    const url = URL.parse(text);
    if (url === null || (url.protocol !== "https:" && url.protocol !== "http:")) {
      throw refused("the URL of an outgoing webhook must be http or https");
    }
    if (url.username !== "" || url.password !== "")
      throw refused("the URL must not contain a user name or password");
    if (!this.#options.allowPrivateHosts && isPrivateHost(url.hostname)) throw privateHost(url.hostname);
    return url;
  }

  #post(url: URL, headers: Record<string, string>, webhook: OutgoingWebhook): Promise<Reply> {
    const isTls = url.protocol === "https:";
    const timeout = AbortSignal.timeout(webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const signal = webhook.signal === undefined ? timeout : AbortSignal.any([timeout, webhook.signal]);
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers, signal, agent: isTls ? this.#https : this.#http };
      const request = isTls ? httpsRequest(url, options) : httpRequest(url, options);
      request.once("response", (response) => {
        const reply = { status: response.statusCode ?? 0, retryAfter: response.headers["retry-after"] };
        drain(response, () => resolve(reply));
      });
      request.once("error", (error) => reject(toOutgoingError(error, timeout.aborted)));
      request.end(webhook.body);
    });
  }
}

/** Reads the response body to its end or to the limit. */
function drain(response: IncomingMessage, done: () => void): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) response.destroy();
  });
  response.once("error", done);
  response.once("close", done);
}

function refused(message: string): OutgoingWebhookError {
  return new OutgoingWebhookError(message, { retryable: false });
}

function privateHost(host: string): OutgoingWebhookError {
  return refused(
    `${host} is a private or loopback address; set outgoing.allowPrivateHosts to send webhooks within your network`,
  );
}

function toOutgoingError(error: Error, isTimeout: boolean): OutgoingWebhookError {
  if (error instanceof OutgoingWebhookError) return error;
  const message = isTimeout
    ? "the receiver did not respond in time"
    : `the receiver cannot be reached: ${error.message}`;
  return new OutgoingWebhookError(message, {
    retryable: error.name !== "AbortError" || isTimeout,
    cause: error,
  });
}
