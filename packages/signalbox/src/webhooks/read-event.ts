/**
 * From the bytes of a delivery to the event that agents receive: verify the signature, parse the body, find the entity, read the event. The
 * intake, deliveries posted to an instance itself and replays use the same functions.
 *
 * Refusals are `SignalboxError`s with the code that the sender receives.
 * See webhooks/README.md.
 */
import { isUtf8 } from "node:buffer";
import { hash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { isFields } from "../core/fields.ts";
import type { WebhookEvent } from "../agents/index.ts";
import { type Entity, isNameOf, toEntity } from "./entity-names.ts";
import type { SignatureProblem, SignedDelivery } from "./schemes/index.ts";
import type { Source } from "./source.ts";
import { findFirst, findText, type SourceKind, type VerifiedDelivery } from "./sources/index.ts";

const FORM = "application/x-www-form-urlencoded";
const JSON_TYPE = /^(application\/([\w.+-]+\+)?json|text\/json|text\/plain)$/;
/** Longer than any provider's ids and types. A longer type is cut, a longer id is hashed; neither is refused. */
const MAX_ID_LENGTH = 256;
const MAX_TITLE_LENGTH = 256;
const MAX_DESCRIPTION_LENGTH = 2000;
const MAX_URL_LENGTH = 2048;

const UNKNOWN_TYPE = "unknown";

/** Null when the signature is valid. */
export function verifySignature(
  source: Source,
  delivery: SignedDelivery,
  now: number,
): SignatureProblem | null {
  if (source.keys.length === 0 && source.scheme.needsNoSecret !== true) return "no_secret";
  if (source.addresses !== null && delivery.address !== undefined) {
    const address = delivery.address();
    if (address === null || !source.addresses.includes(address)) return "address_refused";
  }
  return source.scheme.verify(delivery, source.keys, now, source.windowMs);
}

/** Parses JSON, or a form for the sources that send forms. */
export function parsePayload(
  kind: SourceKind,
  contentType: string | undefined,
  body: Buffer,
): Pick<VerifiedDelivery, "payload" | "json"> {
  if (contentType === "application/json") return parseJson(body);
  const type = contentType?.split(";", 1)[0]?.trim().toLowerCase() ?? "";
  if (type === FORM && kind.takesForms === true) return parseForm(kind, body);
  // `curl -d` declares a form whatever it posts, and some senders declare nothing; the body decides then.
  if (type === "" || type === FORM || JSON_TYPE.test(type)) return parseJson(body);
  throw new SignalboxError("webhook_unsupported_media_type");
}

/**
 * The entity that the delivery is about; null when nothing names one. `named` is the entity in the address, or null.
 * An address that names another entity than the payload is refused: a captured delivery must not work for another entity than its signed body names.
 */
export function findEntity(source: Source, delivery: VerifiedDelivery, named: string | null): Entity | null {
  for (const rule of named === null ? source.entity : source.statedEntity) {
    const found = rule.find(delivery);
    if (found === null) continue;
    if (named !== null && !isNameOf(named, found)) throw new SignalboxError("webhook_entity_mismatch");
    return toEntity(found, rule.isExact);
  }
  return named === null ? null : toEntity(named, false);
}

export function readEvent(
  source: Source,
  delivery: VerifiedDelivery,
  body: Buffer,
  now: number,
): WebhookEvent {
  const { kind } = source;
  const type = readType(source, delivery);
  const action = kind.action === undefined ? null : cut(findFirst(kind.action, delivery), MAX_ID_LENGTH);
  const text = kind.describe(delivery, type, action);
  return {
    id: readId(source, delivery, body),
    source: source.name,
    type,
    action,
    timestamp: new Date(now).toISOString(),
    payload: delivery.payload,
    headers: visibleHeaders(delivery.headers, source.scheme.secretHeader),
    rawBody: body,
    title: cut(text.title, MAX_TITLE_LENGTH) ?? (action === null ? type : `${type} ${action}`),
    description: cut(text.description, MAX_DESCRIPTION_LENGTH),
    url: webAddress(text.url),
    actor: cut(text.actor, MAX_TITLE_LENGTH),
  };
}

/** The event of a delivery that was verified and stored earlier. */
export function readStoredEvent(
  source: Source,
  stored: {
    readonly contentType: string | null;
    readonly headers: Readonly<Record<string, string>>;
    readonly body: Uint8Array;
  },
  receivedAt: number,
): WebhookEvent {
  const body = Buffer.from(stored.body);
  const parsed = parsePayload(source.kind, stored.contentType ?? undefined, body);
  return readEvent(source, { headers: { ...stored.headers }, ...parsed }, body, receivedAt);
}

const CREDENTIAL =
  /^(authorization|proxy-authorization|cookie)$|signature|hmac|token|secret|api-?key|password/;
/** The verdict on each header name. Names repeat with every delivery. Bounded, because senders choose them. */
const isHidden = new Map<string, boolean>();
const MAX_KNOWN_NAMES = 1000;

/** All headers except credentials and signatures, which agents and operators do not need. `secretHeader` has a name of which it cannot be told. */
export function visibleHeaders(headers: IncomingHttpHeaders, secretHeader?: string): Record<string, string> {
  const visible: Record<string, string> = {};
  for (const name in headers) {
    const value = headers[name];
    if (value === undefined || isCredential(name) || name === secretHeader) continue;
    visible[name] = typeof value === "string" ? value : value.join(", ");
  }
  return visible;
}

function isCredential(name: string): boolean {
  let hidden = isHidden.get(name);
  if (hidden === undefined) {
    hidden = CREDENTIAL.test(name) && name !== "i-twilio-idempotency-token";
    if (isHidden.size < MAX_KNOWN_NAMES) isHidden.set(name, hidden);
  }
  return hidden;
}

function parseJson(body: Buffer): { payload: unknown; json: string } {
  if (!isUtf8(body)) throw invalid("The body is not valid UTF-8");
  const json = body.toString();
  let payload: unknown;
  try {
    payload = JSON.parse(json);
  } catch {
    throw invalid("The body is not valid JSON");
  }
  if (!isEventLike(payload)) throw invalid("The body must be a JSON object, or a list of objects");
  return { payload, json };
}

/** One event (an object), or a batch (a non-empty list of objects), which some senders post. */
function isEventLike(payload: unknown): boolean {
  return Array.isArray(payload) ? payload.length > 0 && payload.every(isFields) : isFields(payload);
}

function parseForm(kind: SourceKind, body: Buffer): Pick<VerifiedDelivery, "payload" | "json"> {
  if (!isUtf8(body)) throw invalid("The body is not valid UTF-8");
  const fields: Record<string, string | string[]> = Object.create(null) as Record<string, string | string[]>;
  for (const [name, value] of new URLSearchParams(body.toString())) {
    const present = fields[name];
    if (present === undefined) fields[name] = value;
    else if (Array.isArray(present)) present.push(value);
    else fields[name] = [present, value];
  }
  if (Object.keys(fields).length === 0) throw invalid("The form is empty");
  const inner = kind.formPayloadField === undefined ? undefined : fields[kind.formPayloadField];
  if (typeof inner !== "string") return { payload: { ...fields }, json: null };
  const parsed = parseJson(Buffer.from(inner));
  requireWritable(parsed.payload);
  return parsed;
}

/** The payload of a form is stored as JSON that we serialise. `JSON.parse` accepts deeper nesting than `JSON.stringify`. */
function requireWritable(payload: unknown): void {
  try {
    JSON.stringify(payload);
  } catch {
    throw invalid("The payload is nested too deeply");
  }
}

/**
 * A delivery is refused when a field that the source requires is missing, when the type is neither text nor a number, or when the payload is
 * empty and has no type. An event without a type is `unknown`: many senders have only one type.
 */
function readType(source: Source, delivery: VerifiedDelivery): string {
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

/**
 * The provider's id. Without one, a hash of the body, so that a retry is still recognised. A form is hashed by its fields, because its signature
 * covers the fields: two spellings of the same fields are the same delivery.
 */
function readId(source: Source, delivery: VerifiedDelivery, body: Buffer): string {
  const id = findText(source.deliveryId, delivery);
  if (id !== null) return id.length <= MAX_ID_LENGTH ? id : `sha256:${hash("sha256", id)}`;
  const isForm = delivery.headers["content-type"]?.startsWith(FORM) === true;
  return `sha256:${hash("sha256", isForm ? canonicalJson(delivery.payload) : body)}`;
}

function canonicalJson(payload: unknown): string {
  return JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
}

/** Null for addresses that a browser must not follow, such as `javascript:`: the sender chooses the text. */
function webAddress(text: string | null | undefined): string | null {
  return text != null && text.length <= MAX_URL_LENGTH && /^https?:\/\//i.test(text) ? text : null;
}

function cut(text: string | null | undefined, maxLength: number): string | null {
  if (text == null || text === "") return null;
  return text.length <= maxLength ? text : `${text.slice(0, maxLength - 1)}…`;
}

function invalid(message: string): SignalboxError {
  return new SignalboxError("webhook_invalid_payload", { message });
}
