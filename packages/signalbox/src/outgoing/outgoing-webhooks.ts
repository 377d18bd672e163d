/**
 * Sends signed webhooks to addresses that agents' code names.
 *
 * Invariants:
 * 1. Unless private hosts are allowed, a connection is only opened to an address that was itself checked: literals before the
 *    request, resolved names inside the connection's own look-up, so that a second DNS answer cannot differ from the checked one.
 * 2. A redirect is never followed; it is a non-success like any other. (Following it would let a public receiver point us inside.)
 * 3. A promise resolves only for a 2xx answer; everything else rejects with `OutgoingWebhookError`.
 * 4. One delivery ends within its time limit, whatever the receiver does, and at most `MAX_ANSWER_BYTES` of its answer are read.
 */
import { lookup as systemLookup } from "node:dns";
import type { Agent, IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as HttpsAgent } from "node:https";
import type { Clock } from "../core/clock.ts";
import { Agent as HttpAgent, request as httpRequest } from "../engines/http-server/index.ts";
import { createPublicLookup, isPrivateHost } from "../engines/ip-address/index.ts";
import { ulid } from "../core/ulid.ts";
import { isRetryableStatus, OutgoingWebhookError } from "./outgoing-webhook-error.ts";
import { signOutgoing } from "./sign-outgoing.ts";

/** Providers give receivers 3 to 30 s; an agent's turn waits for this one. */
const DEFAULT_TIMEOUT_MS = 10_000;
/** Enough to free the connection for reuse after a normal answer; a longer one costs the connection. */
const MAX_ANSWER_BYTES = 64 * 1024;
const MAX_SOCKETS_PER_HOST = 32;

export interface OutgoingWebhook {
  readonly url: string;
  /** Serialised once: what is signed is what is sent. */
  readonly body: string;
  readonly secret?: string | undefined;
  /** Delivery id; keep it the same over retries so that receivers can drop copies. Default: a new one. */
  readonly id?: string | undefined;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly timeoutMs?: number | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What the agent runtime needs of this file. */
export interface OutgoingSender {
  send(webhook: OutgoingWebhook): Promise<{ readonly id: string; readonly status: number }>;
}

export interface OutgoingOptions {
  readonly allowPrivateHosts: boolean;
  readonly clock: Clock;
  /** Resolves host names; tests replace it. */
  readonly lookup?: typeof systemLookup;
}

export function newWebhookId(now: number): string {
  return `msg_${ulid(now)}`;
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
    const status = await this.#post(url, headers, webhook);
    if (status < 200 || status > 299) {
      throw new OutgoingWebhookError(`the receiver answered ${status}`, {
        status,
        retryable: isRetryableStatus(status),
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
      throw refused("an outgoing webhook needs an http or https URL");
    }
    if (url.username !== "" || url.password !== "")
      throw refused("the URL must not hold a user name or password");
    if (!this.#options.allowPrivateHosts && isPrivateHost(url.hostname)) throw privateHost(url.hostname);
    return url;
  }

  #post(url: URL, headers: Record<string, string>, webhook: OutgoingWebhook): Promise<number> {
    const isTls = url.protocol === "https:";
    const timeout = AbortSignal.timeout(webhook.timeoutMs ?? DEFAULT_TIMEOUT_MS);
    const signal = webhook.signal === undefined ? timeout : AbortSignal.any([timeout, webhook.signal]);
    return new Promise((resolve, reject) => {
      const options = { method: "POST", headers, signal, agent: isTls ? this.#https : this.#http };
      const request = isTls ? httpsRequest(url, options) : httpRequest(url, options);
      request.once("response", (response) => drain(response, () => resolve(response.statusCode ?? 0)));
      request.once("error", (error) => reject(toOutgoingError(error, timeout.aborted)));
      request.end(webhook.body);
    });
  }
}

/** Reads the answer's body to its end or its limit; the status is known either way. */
function drain(response: IncomingMessage, done: () => void): void {
  let bytes = 0;
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > MAX_ANSWER_BYTES) response.destroy();
  });
  response.once("error", done);
  response.once("close", done);
}

function refused(message: string): OutgoingWebhookError {
  return new OutgoingWebhookError(message, { retryable: false });
}

function privateHost(host: string): OutgoingWebhookError {
  return refused(
    `${host} is a private or loopback address; set outgoing.allowPrivateHosts to send webhooks inside your network`,
  );
}

function toOutgoingError(error: Error, isTimeout: boolean): OutgoingWebhookError {
  if (error instanceof OutgoingWebhookError) return error;
  const message = isTimeout
    ? "the receiver did not answer in time"
    : `the receiver cannot be reached: ${error.message}`;
  return new OutgoingWebhookError(message, {
    retryable: error.name !== "AbortError" || isTimeout,
    cause: error,
  });
}
