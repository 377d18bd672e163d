/**
 * One attempt to deliver an event to a URL: the signed bytes with the sender's headers, signatures included, so that the vendor's own verifier passes
 * at the receiver. Headers of the connection and credentials of the sender are left out.
 *
 * A signature of ours has the time of the attempt and the id of the event.
 */
import type { IncomingHttpHeaders } from "node:http";
import type { Sealing } from "../../core/sealing.ts";
import {
  OutgoingWebhookError,
  parseRetryAfter,
  type RequestSender,
  signOutgoing,
} from "../../outgoing/index.ts";
import { visibleHeaders } from "../read-event.ts";
import type { AttemptRecord, RoutedEvent, StoredDelivery } from "./event-record.ts";
import type { RouteAuth, UrlTarget } from "./route.ts";

/** Of the response's body. */
const KEPT_BYTES = 4096;
const MAX_HEADER_LENGTH = 512;
/** Headers of the connection between the sender and this server, and what only concerns the two. */
const OWN_TO_A_CONNECTION =
  /^(host|connection|keep-alive|proxy-.*|te|trailer|transfer-encoding|upgrade|content-length|expect|accept-encoding|authorization|cookie|forwarded|x-forwarded-.*|x-real-ip|via)$/;

export interface UrlAttempt {
  readonly status: number | null;
  readonly error: string | null;
  readonly retryAfterMs: number | null;
  readonly request: AttemptRecord["request"];
  readonly responseHeaders: AttemptRecord["responseHeaders"];
  readonly response: Uint8Array | null;
}

export interface UrlAttemptParts {
  readonly requests: RequestSender;
  readonly sealing: Sealing;
  readonly now: number;
  readonly signal: AbortSignal;
}

export async function attemptUrl(
  { requests, sealing, now, signal }: UrlAttemptParts,
  target: UrlTarget,
  event: RoutedEvent,
  delivery: StoredDelivery,
): Promise<UrlAttempt> {
  const plain = {
    ...forwarded(delivery.headers),
    ...target.headers,
    "user-agent": "signalbox",
    "content-length": String(delivery.body.length),
    "signalbox-event-id": event.id,
    "signalbox-source": event.source,
    "signalbox-route": event.name,
    "signalbox-attempt": String(event.attempts),
  };
  const secret = {
    ...forwarded(openHeaders(sealing, delivery)),
    ...authHeaders(target.auth, event.id, delivery.body, now),
  };
  const request = { method: target.method, url: target.url, headers: visibleHeaders(plain) };
  try {
    const reply = await requests.send({
      url: target.url,
      method: target.method,
      headers: { ...plain, ...secret },
      body: delivery.body,
      timeoutMs: target.timeoutMs,
      keptBytes: KEPT_BYTES,
      signal,
    });
    const isSuccess = reply.status >= 200 && reply.status <= 299;
    return {
      status: reply.status,
      error: isSuccess ? null : `the receiver answered ${reply.status}`,
      retryAfterMs: parseRetryAfter(reply.headers["retry-after"], now),
      request,
      responseHeaders: shownHeaders(reply.headers),
      response: reply.body,
    };
  } catch (error) {
    return {
      status: null,
      error: explain(error),
      retryAfterMs: null,
      request,
      responseHeaders: null,
      response: null,
    };
  }
}

/** An account must not learn which names the network of the server has: an unknown name and a private address look the same. */
function explain(error: unknown): string {
  if (!(error instanceof OutgoingWebhookError)) return "the request could not be sent";
  const { code } = (error.cause ?? {}) as { readonly code?: unknown };
  const isHidden =
    !error.retryable ||
    code === "ENOTFOUND" ||
    code === "EAI_AGAIN" ||
    error.cause instanceof OutgoingWebhookError;
  return isHidden ? "the receiver has no public address" : error.message;
}

export function sealedContext({ id }: Pick<StoredDelivery, "id">): string {
  return JSON.stringify(["webhook_delivery", id]);
}

/** The headers with signatures; none if no key decrypts them. */
export function openHeaders(sealing: Sealing, delivery: StoredDelivery): Readonly<Record<string, string>> {
  if (delivery.openHeaders !== undefined) return delivery.openHeaders;
  if (delivery.sealedHeaders === null) return {};
  const opened = sealing.open(delivery.sealedHeaders, sealedContext(delivery));
  return opened === null ? {} : (JSON.parse(opened.text) as Record<string, string>);
}

function forwarded(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !OWN_TO_A_CONNECTION.test(name)));
}

function authHeaders(
  auth: RouteAuth | null,
  id: string,
  body: Uint8Array,
  time: number,
): Readonly<Record<string, string>> {
  if (auth === null) return {};
  const secret = auth.secret.reveal();
  switch (auth.type) {
    case "bearer":
      return { authorization: `Bearer ${secret}` };
    case "basic":
      return { authorization: `Basic ${Buffer.from(`${auth.name}:${secret}`).toString("base64")}` };
    case "header":
      return { [auth.name.toLowerCase()]: secret };
    case "signature": {
      const { "x-signature": signature = "" } = signOutgoing({ id, time, body, secret });
      return { "x-signature": signature, "x-event-id": id };
    }
    case "standard": {
      const { "x-signature": _generic, ...standard } = signOutgoing({ id, time, body, secret });
      return standard;
    }
  }
}

function shownHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const shown: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value === undefined || name === "set-cookie") continue;
    shown[name] = String(value).slice(0, MAX_HEADER_LENGTH);
  }
  return shown;
}
