/** Turns a verified delivery into the event that agents see. */
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { WebhookEvent } from "../agents/index.ts";
import type { Source } from "./source.ts";
import { SignalboxError } from "@signalbox/protocol";
import { findFirst, findText, type VerifiedDelivery } from "./sources/index.ts";

/** Longer ids and types than any provider's; beyond it the text is cut or hashed, never refused. */
const MAX_ID_LENGTH = 256;
const MAX_TITLE_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 2000;
const MAX_URL_LENGTH = 2048;

export const UNKNOWN_TYPE = "unknown";

/**
 * Throws `webhook_invalid_payload` for what is no event: a field that the source requires is missing, the type is of a type that can be none,
 * or there is nothing at all, neither a type nor a field. An event that does not name its type is `unknown`: many senders have only one.
 */
export function readType(source: Source, delivery: VerifiedDelivery): string {
  const missing = source.kind.missing?.(delivery) ?? null;
  if (missing !== null) throw invalid(`The field ${missing} is missing`);
  const type = cut(findText(source.eventType, delivery), MAX_ID_LENGTH);
  if (type === null && isEmpty(delivery.payload)) throw invalid("The body holds no event");
  return type ?? UNKNOWN_TYPE;
}

function isEmpty(payload: unknown): boolean {
  return Array.isArray(payload)
    ? payload.every(isEmpty)
    : typeof payload === "object" && payload !== null && Object.keys(payload).length === 0;
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("webhook_invalid_payload", { message });
}

export function readEvent(
  source: Source,
  delivery: VerifiedDelivery,
  type: string,
  body: Buffer,
  now: number,
): WebhookEvent {
  const { kind } = source;
  const action = kind.action === undefined ? null : cut(findFirst(kind.action, delivery), MAX_ID_LENGTH);
  const text = kind.describe(delivery, type, action);
  return {
    id: readId(source, delivery, body),
    source: source.name,
    type,
    action,
    timestamp: new Date(now).toISOString(),
    payload: delivery.payload,
    headers: visibleHeaders(delivery.headers),
    rawBody: body,
    title: cut(text.title, MAX_TITLE_LENGTH) ?? (action === null ? type : `${type} ${action}`),
    description: cut(text.description, MAX_DESCRIPTION_LENGTH),
    url: webAddress(text.url),
    actor: cut(text.actor, MAX_TITLE_LENGTH),
  };
}

/**
 * The provider's id; without one, a hash of the body, so that a retry is still recognised. A form is hashed by its fields, because that
 * is what its signature covers: the same fields spelled differently are the same delivery.
 */
function readId(source: Source, delivery: VerifiedDelivery, body: Buffer): string {
  const id = findText(source.deliveryId, delivery);
  if (id !== null) return id.length <= MAX_ID_LENGTH ? id : `sha256:${hash("sha256", id)}`;
  const isForm = delivery.headers["content-type"]?.startsWith("application/x-www-form-urlencoded") === true;
  return `sha256:${hash("sha256", isForm ? canonicalJson(delivery.payload) : body)}`;
}

function canonicalJson(payload: unknown): string {
  return JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** Only what a browser may safely follow: a payload is the sender's text, and `javascript:` is an address too. */
function webAddress(text: string | null | undefined): string | null {
  return text != null && text.length <= MAX_URL_LENGTH && /^https?:\/\//i.test(text) ? text : null;
}

function cut(text: string | null | undefined, maxLength: number): string | null {
  if (text == null || text === "") return null;
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

const CREDENTIAL =
  /^(authorization|proxy-authorization|cookie)$|signature|hmac|token|secret|api-?key|password/;
/** Header names repeat from delivery to delivery; judging each once is enough. Bounded, because senders choose them. */
const isHidden = new Map<string, boolean>();
const MAX_JUDGED_NAMES = 1000;

/** Everything but credentials and signatures, which prove a delivery to the intake and are nobody else's business. */
export function visibleHeaders(headers: IncomingHttpHeaders): Record<string, string> {
  const visible: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || hides(name)) continue;
    visible[name] = typeof value === "string" ? value : value.join(", ");
  }
  return visible;
}

function hides(name: string): boolean {
  let hidden = isHidden.get(name);
  if (hidden === undefined) {
    hidden = CREDENTIAL.test(name) && name !== "i-twilio-idempotency-token";
    if (isHidden.size < MAX_JUDGED_NAMES) isHidden.set(name, hidden);
  }
  return hidden;
}
