/**
 * Sends requests to addresses that accounts choose.
 *
 * Invariants:
 * 1. Unless private hosts are allowed, connections are opened to public addresses only (see `engines/ip-address`).
 * 2. Redirects are not followed, because a public receiver could redirect to a private address.
 * 3. A request ends within its time limit, and at most `MAX_RESPONSE_BYTES` of the response body are read.
 */
import { lookup as systemLookup } from "node:dns";
import type { Agent, IncomingHttpHeaders, IncomingMessage } from "node:http";
import { request as httpsRequest, Agent as HttpsAgent } from "node:https";
import { Agent as HttpAgent, request as httpRequest } from "../engines/http-server/index.ts";
import { createPublicLookup, isPrivateHost } from "../engines/ip-address/index.ts";
import { OutgoingWebhookError } from "./outgoing-webhook-error.ts";

/** Enough to reuse the connection after a usual response; after a longer one the connection is closed. */
const MAX_RESPONSE_BYTES = 64 * 1024;
const MAX_SOCKETS_PER_HOST = 32;
const NO_BODY = Buffer.from("");

export interface OutgoingRequest {
  readonly url: string;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
  readonly timeoutMs: number;
  /** How much of the response body is kept. Default: nothing. */
  readonly keptBytes?: number;
  readonly signal?: AbortSignal | undefined;
}

export interface OutgoingReply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

export interface OutgoingRequestsOptions {
  readonly allowPrivateHosts: boolean;
  /** Resolves host names; replaced in tests. */
  readonly lookup?: typeof systemLookup;
}

export interface RequestSender {
  /** Resolves for a response of any status; rejects with `OutgoingWebhookError` if there is none. */
  send(request: OutgoingRequest): Promise<OutgoingReply>;
}

export class OutgoingRequests implements RequestSender {
  readonly #allowsPrivateHosts: boolean;
  readonly #http: Agent;
  readonly #https: HttpsAgent;

  constructor({ allowPrivateHosts, lookup = systemLookup }: OutgoingRequestsOptions) {
    this.#allowsPrivateHosts = allowPrivateHosts;
    const agent = {
      keepAlive: true,
      maxSockets: MAX_SOCKETS_PER_HOST,
      lookup: allowPrivateHosts ? lookup : createPublicLookup(lookup, privateHost),
    };
    this.#http = new HttpAgent(agent);
    this.#https = new HttpsAgent(agent);
  }

  async send(request: OutgoingRequest): Promise<OutgoingReply> {
    return this.#send(this.#parseUrl(request.url), request);
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
    if (!this.#allowsPrivateHosts && isPrivateHost(url.hostname)) throw privateHost(url.hostname);
    return url;
  }

  #send(
    url: URL,
    { method, headers, body, timeoutMs, keptBytes = 0, signal }: OutgoingRequest,
  ): Promise<OutgoingReply> {
    const isTls = url.protocol === "https:";
    const timeout = AbortSignal.timeout(timeoutMs);
    const either = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
    return new Promise((resolve, reject) => {
      const options = { method, headers, signal: either, agent: isTls ? this.#https : this.#http };
      const request = isTls ? httpsRequest(url, options) : httpRequest(url, options);
      request.once("response", (response) => {
        const { statusCode: status = 0, headers: received } = response;
        read(response, keptBytes, (kept) => resolve({ status, headers: received, body: kept }));
      });
      request.once("error", (error) => reject(toOutgoingError(error, timeout.aborted)));
      request.end(body);
    });
  }
}

/** Reads the response body to its end or to the limit, and keeps its beginning. */
function read(response: IncomingMessage, keptBytes: number, done: (kept: Buffer) => void): void {
  let bytes = 0;
  const kept: Buffer[] = [];
  response.on("data", (chunk: Buffer) => {
    if (bytes < keptBytes) kept.push(chunk.subarray(0, keptBytes - bytes));
    bytes += chunk.length;
    if (bytes > MAX_RESPONSE_BYTES) response.destroy();
  });
  const end = () => done(kept.length === 0 ? NO_BODY : Buffer.concat(kept));
  response.once("error", end);
  response.once("close", end);
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
