/**
 * A webhook delivery between two nodes, and its outcome. The body travels as the bytes that were signed; the owner parses it again if the agent reads
 * `payload`. Fields of a form are sent as JSON: their rules belong to the source.
 */
import type { DeliveryOutcome, DeliveryTarget, SignedHeaders } from "../../contracts/agent-deliveries.ts";
import type { WebhookEvent } from "../../contracts/webhook-event.ts";
import { decodePacket, encodePacket, PacketError } from "../../engines/node-link/index.ts";
import { throwCarried } from "./carried-error.ts";

export interface CarriedDelivery {
  readonly target: DeliveryTarget;
  readonly event: WebhookEvent;
  readonly signed: SignedHeaders | undefined;
}

const UNSIGNED = 1;
const SIGNED = 2;
const FORM = "application/x-www-form-urlencoded";

/** Who sees a header, as one character each: the event, the signed headers, or both. A header with several values is a list in JSON. */
const EVENT_ONLY = "e";
const SIGNED_ONLY = "s";
const BOTH = "b";
const LIST = "l";
const FIXED_TEXTS = 14;

export function encodeDelivery({ target, event, signed }: CarriedDelivery): Buffer {
  const { headers } = event;
  const payload = headers["content-type"]?.startsWith(FORM) === true ? JSON.stringify(event.payload) : null;
  const list: string[] = [];
  let visibility = "";
  for (const name in headers) {
    const value = headers[name] ?? "";
    visibility += signed?.headers[name] === value ? BOTH : EVENT_ONLY;
    list.push(name, value);
  }
  if (signed !== undefined) {
    const all = signed.headers;
    for (const name in all) {
      const value = all[name];
      if (value === undefined || (typeof value === "string" && headers[name] === value)) continue;
      visibility += typeof value === "string" ? SIGNED_ONLY : LIST;
      list.push(name, typeof value === "string" ? value : JSON.stringify(value));
    }
  }
  return encodePacket(
    signed === undefined ? UNSIGNED : SIGNED,
    [
      target.account,
      target.agent,
      target.name,
      event.id,
      event.source,
      event.type,
      event.action,
      event.timestamp,
      event.title,
      event.description,
      event.url,
      event.actor,
      payload,
      visibility,
      ...list,
    ],
    event.rawBody,
  );
}

/** Throws `PacketError` for bytes that are not a delivery. */
export function decodeDelivery(bytes: Buffer): CarriedDelivery {
  const { kind, texts, bytes: rawBody } = decodePacket(bytes);
  const [account, agent, name, id, source, type, action, timestamp, title, description, url, actor, payload] =
    texts;
  const visibility = texts[FIXED_TEXTS - 1];
  if (
    (kind !== SIGNED && kind !== UNSIGNED) ||
    visibility == null ||
    texts.length !== FIXED_TEXTS + 2 * visibility.length
  )
    throw new PacketError("not a delivery");
  const headers: Record<string, string> = {};
  const all: Record<string, string | readonly string[]> = {};
  for (let i = 0; i < visibility.length; i++) {
    const header = required(texts[FIXED_TEXTS + 2 * i]);
    const value = required(texts[FIXED_TEXTS + 2 * i + 1]);
    const seenBy = visibility[i];
    if (seenBy === EVENT_ONLY || seenBy === BOTH) headers[header] = value;
    if (seenBy === SIGNED_ONLY || seenBy === BOTH) all[header] = value;
    if (seenBy === LIST) all[header] = parseList(value);
  }
  let parsed: { readonly value: unknown } | null = null;
  return {
    target: { account: required(account), agent: required(agent), name: required(name) },
    event: {
      id: required(id),
      source: required(source),
      type: required(type),
      action: action ?? null,
      timestamp: required(timestamp),
      // Few handlers read it, and parsing costs as much as the rest of the hop.
      get payload() {
        parsed ??= { value: JSON.parse(payload ?? rawBody.toString()) };
        return parsed.value;
      },
      headers,
      rawBody,
      title: required(title),
      description: description ?? null,
      url: url ?? null,
      actor: actor ?? null,
    },
    signed: kind === SIGNED ? { headers: all } : undefined,
  };
}

const OUTCOMES = ["processed", "queued", "duplicate"] as const;
const ANSWERED = 10;

export function encodeOutcome(outcome: DeliveryOutcome): Buffer {
  if (outcome.kind !== "answered") return encodePacket(OUTCOMES.indexOf(outcome.kind), []);
  return encodePacket(ANSWERED, [String(outcome.status), outcome.contentType, outcome.body]);
}

/** Throws the error that the delivery ended with, and `PacketError` for bytes that are no outcome. */
export function decodeOutcome(bytes: Buffer): DeliveryOutcome {
  const packet = decodePacket(bytes);
  const kind = OUTCOMES[packet.kind];
  if (kind !== undefined) return { kind };
  throwCarried(packet);
  const [status, contentType, body] = packet.texts;
  if (packet.kind !== ANSWERED) throw new PacketError("not an outcome");
  return {
    kind: "answered",
    status: Number(required(status)),
    contentType: required(contentType),
    body: required(body),
  };
}

function required(text: string | null | undefined): string {
  if (text == null) throw new PacketError("a required text is missing");
  return text;
}

function parseList(text: string): string[] {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    throw new PacketError("a header's values are not JSON");
  }
  if (!Array.isArray(list)) throw new PacketError("a header's values are not a list");
  return list.map(String);
}
