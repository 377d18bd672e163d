/**
 * What happens to a delivery once its bytes are here: verify, parse, find the entity, hand it to the agent, remember what came of it.
 *
 * Invariants:
 * 1. Nothing is parsed, claimed, created or written before the signature over the raw body holds, and everyone who fails that gets
 *    one and the same answer, whether the source has a secret, the entity exists, or neither.
 * 2. 200 and 202 are only ever answered after the agent's outcome is on stable storage (the door's promise).
 * 3. A genuine delivery that cannot be taken now is refused with a status that makes its provider try again.
 */
import type { IncomingHttpHeaders } from "node:http";
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type { AgentsDoor, DeliveryOutcome, WebhookEvent } from "../agents/index.ts";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import { renderError } from "../http/render-error.ts";
import { type Admission, overloaded } from "./admission.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryReason, DeliveryRecord } from "./delivery-record.ts";
import type { EntityClaims } from "./entity-claims.ts";
import { toInstanceName } from "./instance-name.ts";
import { parsePayload } from "./parse-payload.ts";
import { readEvent, readType, visibleHeaders } from "./read-event.ts";
import type { RejectionNotice } from "./rejection-notice.ts";
import type { SignatureProblem } from "./schemes/index.ts";
import type { Source } from "./source.ts";
import { findFirst, type VerifiedDelivery } from "./sources/index.ts";

export interface ArrivedDelivery {
  readonly source: Source;
  /** The entity that the URL names; null when it must be found in the delivery. */
  readonly urlEntity: string | null;
  /** False for `/webhooks/<entity>`, where the URL alone decides and no rule of a source applies. */
  readonly hasEntityRule: boolean;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  urls(): readonly string[];
}

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface IntakeParts {
  readonly agents: AgentsDoor;
  readonly claims: EntityClaims;
  readonly admission: Admission;
  readonly log: DeliveryLog;
  readonly clock: Clock;
  readonly notice: RejectionNotice;
  onRecord(record: DeliveryRecord): void;
}

const JSON_TYPE = "application/json; charset=utf-8";
const ANSWERS: Readonly<Record<"processed" | "queued" | "duplicate", Answer>> = {
  processed: { status: 200, contentType: JSON_TYPE, body: '{"status":"processed"}' },
  queued: { status: 202, contentType: JSON_TYPE, body: '{"status":"queued"}' },
  duplicate: { status: 200, contentType: JSON_TYPE, body: '{"status":"duplicate"}' },
};

/**
 * What everyone gets whose signature does not hold. Written once and returned, not thrown: under an attack this is the hottest path there
 * is, and an error's stack trace would cost as much as the whole verification.
 */
const REFUSAL: Answer = (() => {
  const { status, body } = renderError(new SignalboxError("webhook_invalid_signature"), "envelope", "");
  return { status, contentType: JSON_TYPE, body };
})();

type OutcomeKind = DeliveryOutcome["kind"] | "handshake" | "stale";

export class Intake {
  readonly #parts: IntakeParts;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  async receive(arrived: ArrivedDelivery): Promise<Answer> {
    const startedAt = performance.now();
    const now = this.#parts.clock.now();
    const trace: Trace = { event: null, instance: "" };
    const problem = verifySignature(arrived, now);
    if (problem !== null) {
      this.#record(arrived, now, startedAt, trace, { status: "rejected", reason: problem }, REFUSAL.status);
      return REFUSAL;
    }
    try {
      const answer = await this.#process(arrived, now, trace);
      const { status } = answer.answer;
      this.#record(arrived, now, startedAt, trace, resultOf(answer.outcome, status), status);
      return answer.answer;
    } catch (error) {
      const refusal = explainRefusal(error);
      this.#record(
        arrived,
        now,
        startedAt,
        trace,
        refusal,
        error instanceof SignalboxError ? error.status : 500,
      );
      throw withRetryAfter(error);
    }
  }

  /** A delivery whose body never came whole. It is unverified, so it counts as rejected whatever the cause, and stays off the disk. */
  recordUnread(source: Source, headers: IncomingHttpHeaders, error: unknown): void {
    const reason = error instanceof SignalboxError ? UNREAD_REASONS[error.id] : undefined;
    if (reason === undefined) return;
    const arrived = { source, urlEntity: null, hasEntityRule: false, headers, body: NO_BODY, urls: () => [] };
    const trace: Trace = { event: null, instance: "" };
    const status = error instanceof SignalboxError ? error.status : 500;
    this.#record(
      arrived,
      this.#parts.clock.now(),
      performance.now(),
      trace,
      { status: "rejected", reason },
      status,
    );
  }

  /** Hands a stored delivery to its instance again. `isRepeat` gives it an id of its own, so that the ledger lets it pass. */
  async replay(
    source: Source,
    record: DeliveryRecord,
    isRepeat: boolean,
  ): Promise<{ outcome: DeliveryOutcome; eventId: string }> {
    const body = Buffer.from(record.body ?? []);
    const headers: IncomingHttpHeaders = { ...record.headers };
    const delivery = { headers, payload: parsePayload(source.kind, record.contentType ?? undefined, body) };
    const event = readEvent(source, delivery, readType(source, delivery), body, this.#parts.clock.now());
    const eventId = isRepeat
      ? `${record.deliveryId}#replay-${ulid(this.#parts.clock.now())}`
      : record.deliveryId;
    const target = { account: record.accountId, agent: record.agent, name: record.instance };
    return { outcome: await this.#parts.agents.deliver(target, { ...event, id: eventId }), eventId };
  }

  /** Throws for a delivery that cannot be taken. Not `async`: see `Trace`. */
  #process(arrived: ArrivedDelivery, now: number, trace: Trace): Processed | Promise<Processed> {
    const { source, headers, body } = arrived;
    const payload = parsePayload(source.kind, headers["content-type"], body);
    const delivery: VerifiedDelivery = { headers, payload };
    if (!isFresh(source, payload, now)) return { answer: REFUSAL, outcome: "stale" };
    const type = readType(source, delivery);
    const handshake = source.kind.handshake?.(delivery, type);
    const event = readEvent(source, delivery, type, body, now);
    trace.event = { id: event.id, type, title: event.title, headers: event.headers };
    if (handshake != null) {
      return { answer: { ...handshake, contentType: JSON_TYPE }, outcome: "handshake" };
    }
    const name = this.#instanceOf(arrived, delivery);
    if (typeof name !== "string") return name.then((found) => this.#deliver(source, found, event, trace));
    return this.#deliver(source, name, event, trace);
  }

  #deliver(source: Source, name: string, event: WebhookEvent, trace: Trace): Promise<Processed> {
    trace.instance = name;
    this.#parts.admission.enter();
    return this.#parts.agents
      .deliver({ account: source.accountId, agent: source.agent, name }, event)
      .then(this.#onEnd, this.#onFailure);
  }

  readonly #onEnd = (outcome: DeliveryOutcome): Processed => {
    this.#parts.admission.leave();
    const answer = outcome.kind === "answered" ? outcome : ANSWERS[outcome.kind];
    return { answer, outcome: outcome.kind };
  };

  readonly #onFailure = (error: unknown): never => {
    this.#parts.admission.leave();
    throw error;
  };

  #instanceOf(arrived: ArrivedDelivery, delivery: VerifiedDelivery): string | Promise<string> {
    const { source, urlEntity } = arrived;
    const found = arrived.hasEntityRule ? findFirst(source.entity, delivery) : null;
    if (found === null && urlEntity === null) throw new SignalboxError("webhook_missing_entity");
    const entity = found ?? urlEntity ?? "";
    const plain = requireName(toInstanceName(entity, "plain"));
    if (found !== null && urlEntity !== null && toInstanceName(urlEntity, "plain") !== plain) {
      const exact = toInstanceName(found, "reversible");
      if (urlEntity !== exact) throw new SignalboxError("webhook_entity_mismatch");
    }
    if (source.entityForm === "reversible") return requireName(toInstanceName(entity, "reversible"));
    const { claims, agents, admission } = this.#parts;
    const { accountId: account, agent } = source;
    return claims.resolve(account, agent, plain, entity, (name) => {
      // A delivery that will be refused must not leave an instance behind.
      if (admission.hasRoom) agents.prepare({ account, agent, name });
    });
  }

  #record(
    arrived: ArrivedDelivery,
    now: number,
    startedAt: number,
    trace: Trace,
    result: Result,
    httpStatus: number,
  ): void {
    const { source, headers, body } = arrived;
    const { event } = trace;
    const isRejected = result.status === "rejected";
    const record: DeliveryRecord = {
      id: ulid(this.#parts.clock.now()),
      accountId: source.accountId,
      source: source.name,
      ...result,
      httpStatus,
      receivedAt: now,
      durationMs: performance.now() - startedAt,
      deliveryId: event?.id ?? "",
      type: event?.type ?? "",
      title: event?.title ?? "",
      agent: source.agent,
      instance: trace.instance,
      contentType: headers["content-type"] ?? null,
      headers: event?.headers ?? (isRejected ? NO_HEADERS : visibleHeaders(headers)),
      bodyBytes: body.length,
      body: isRejected ? null : body,
    };
    this.#parts.log.record(record);
    this.#parts.onRecord(record);
    if (isRejected) this.#parts.notice.rejected(source, result.reason);
  }
}

/**
 * Filled while a delivery is worked on, so that its record tells how far it came. It has what the record needs and no more: a delivery waits
 * for its sync far longer than it runs, and a parsed payload that is held meanwhile is most of what the garbage collector has to copy.
 */
interface Trace {
  event: Pick<WebhookEvent, "id" | "type" | "title" | "headers"> | null;
  instance: string;
}

interface Processed {
  readonly answer: Answer;
  readonly outcome: OutcomeKind;
}

type Result = Pick<DeliveryRecord, "status" | "reason">;

const NO_HEADERS = {};
const NO_BODY = Buffer.alloc(0);

const UNREAD_REASONS: Readonly<Partial<Record<ErrorName, DeliveryReason>>> = {
  body_too_large: "body_too_large",
  request_timeout: "body_timeout",
  malformed_http: "body_broke_off",
  overloaded: "overloaded",
};

function verifySignature(arrived: ArrivedDelivery, now: number): SignatureProblem | null {
  const { source } = arrived;
  if (source.keys.length === 0) return "no_secret";
  return source.scheme.verify(arrived, source.keys, now, source.windowMs);
}

/** For providers that put the time they sign into the payload: one without it is as worthless as a stale one. */
function isFresh(source: Source, payload: unknown, now: number): boolean {
  if (source.kind.sentAt === undefined || source.scheme !== source.kind.scheme) return true;
  const sentAt = source.kind.sentAt(payload);
  return sentAt !== null && Math.abs(now - sentAt) <= source.windowMs;
}

function requireName(name: string | null): string {
  if (name === null) {
    throw new SignalboxError("webhook_missing_entity", { message: "The entity cannot be used as a name" });
  }
  return name;
}

function resultOf(outcome: OutcomeKind, status: number): Result {
  if (outcome === "stale") return { status: "rejected", reason: "timestamp_outside_window" };
  // The sender was told that its event was not taken.
  if (outcome === "answered" && (status < 200 || status > 299))
    return { status: "failed", reason: "refused_by_agent" };
  return outcome === "duplicate"
    ? { status: "duplicate", reason: null }
    : { status: "accepted", reason: outcome };
}

function explainRefusal(error: unknown): Result {
  if (!(error instanceof SignalboxError)) return { status: "failed", reason: "handler_failed" };
  switch (error.id) {
    case "webhook_invalid_payload":
      return { status: "rejected", reason: "invalid_payload" };
    case "webhook_missing_entity":
      return { status: "rejected", reason: "missing_entity" };
    case "webhook_entity_mismatch":
      return { status: "rejected", reason: "entity_mismatch" };
    case "webhook_unsupported_media_type":
      return { status: "rejected", reason: "unsupported_media_type" };
    case "webhook_rejected":
      return { status: "failed", reason: "refused_by_agent" };
    case "overloaded":
    case "stopping":
      return { status: "failed", reason: "overloaded" };
    default:
      return { status: "failed", reason: "handler_failed" };
  }
}

/** The runtime's own overload speaks to clients of all kinds; to a provider it must say when to come back. */
function withRetryAfter(error: unknown): unknown {
  const isBare =
    error instanceof SignalboxError && error.status === 503 && error.headers["retry-after"] === undefined;
  return isBare ? overloaded() : error;
}
