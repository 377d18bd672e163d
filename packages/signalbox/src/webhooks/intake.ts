/**
 * What happens to a delivery once its bytes are here: verify, parse, find the entity, hand it to the agent, remember what came of it.
 *
 * Invariants:
 * 1. Nothing is parsed, claimed, created or written before the signature over the raw body holds, and everyone who fails that gets
 *    one and the same answer, whether the source has a secret, the entity exists, or neither.
 * 2. 200 and 202 are only ever answered after the agent's outcome, or the delivery itself, is on stable storage.
 * 3. A genuine delivery that cannot be taken now is refused with a status that makes its provider try again.
 * 4. Every answer is given in time (`PendingAnswer`), whatever the instance, the database or the disk do.
 */
import type { IncomingHttpHeaders } from "node:http";
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type { AgentsDoor, DeliveryOutcome, DeliveryTarget, WebhookEvent } from "../agents/index.ts";
import type { Clock } from "../core/clock.ts";
import { ulid } from "../core/ulid.ts";
import { type Admission, overloaded } from "./admission.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import type { DeliveryReason, DeliveryRecord } from "./delivery-record.ts";
import {
  type Answer,
  ANSWERS,
  explainRefusal,
  JSON_TYPE,
  type Processed,
  REFUSAL,
  type Result,
  resultOf,
} from "./delivery-result.ts";
import type { EntityClaims } from "./entity-claims.ts";
import { isNameOf, toInstanceName } from "./instance-name.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDelivery } from "./late-delivery-table.ts";
import { parsePayload } from "./parse-payload.ts";
import { type AnswerBook, type AnswerTimes, PendingAnswer } from "./pending-answer.ts";
import { readEvent, readType, visibleHeaders } from "./read-event.ts";
import type { RejectionNotice } from "./rejection-notice.ts";
import type { SignatureProblem } from "./schemes/index.ts";
import type { Source } from "./source.ts";
import { findFirst, type VerifiedDelivery } from "./sources/index.ts";

export interface ArrivedDelivery {
  readonly source: Source;
  /** The entity that the URL names; null when it must be found in the delivery. */
  readonly urlEntity: string | null;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
  /** Bytes of the body that count against the room for bodies; the intake gives them back when the delivery is done with. */
  readonly reservedBytes: number;
  urls(): readonly string[];
}

export interface IntakeParts {
  readonly agents: AgentsDoor;
  readonly claims: EntityClaims;
  readonly admission: Admission;
  readonly log: DeliveryLog;
  readonly clock: Clock;
  readonly notice: RejectionNotice;
  readonly late: LateDeliveries;
  readonly times: AnswerTimes;
  onRecord(record: DeliveryRecord): void;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #answers: AnswerBook<Trace>;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#answers = {
      times: parts.times,
      late: parts.late,
      toLate: (trace) => (trace.instance === "" ? null : toLateDelivery(trace)),
      onDone: (trace) => this.#release(trace),
      onEnd: (trace, { answer, outcome }) => {
        this.#record(trace, resultOf(outcome.kind, answer.status), answer.status);
        return answer;
      },
      onFailure: (trace, error) => this.#refuse(trace, error),
      onStored: (trace) => {
        this.#record(trace, { status: "accepted", reason: "stored" }, ANSWERS.queued.status);
        return ANSWERS.queued;
      },
      onTimeUp: (trace) => {
        trace.isWithdrawn = true;
        return this.#refuse(trace, overloaded());
      },
    };
  }

  async receive(arrived: ArrivedDelivery): Promise<Answer> {
    const trace = this.#trace(arrived);
    const problem = verifySignature(arrived, trace.now);
    if (problem !== null) {
      this.#release(trace);
      this.#record(trace, { status: "rejected", reason: problem }, REFUSAL.status);
      return REFUSAL;
    }
    let work: AnsweredAtOnce | Promise<Processed>;
    try {
      work = this.#process(trace);
    } catch (error) {
      this.#release(trace);
      throw this.#refuse(trace, error);
    }
    if (work instanceof Promise) return PendingAnswer.of(this.#answers, trace, work);
    this.#release(trace);
    this.#record(trace, work.result, work.answer.status);
    return work.answer;
  }

  #release({ arrived }: Trace): void {
    this.#parts.admission.releaseBytes(arrived.reservedBytes);
  }

  /** What its sender is told of a delivery that could not be taken. */
  #refuse(trace: Trace, error: unknown): unknown {
    const status = error instanceof SignalboxError ? error.status : 500;
    this.#record(trace, explainRefusal(error), status);
    return withRetryAfter(error);
  }

  #trace(arrived: ArrivedDelivery): Trace {
    const now = this.#parts.clock.now();
    return { arrived, now, startedAt: performance.now(), event: null, instance: "", isWithdrawn: false };
  }

  /** A delivery whose body never came whole. It is unverified, so it counts as rejected whatever the cause, and stays off the disk. */
  recordUnread(source: Source, headers: IncomingHttpHeaders, error: unknown): void {
    const reason = error instanceof SignalboxError ? UNREAD_REASONS[error.id] : undefined;
    if (reason === undefined) return;
    const arrived = { source, urlEntity: null, headers, body: NO_BODY, reservedBytes: 0, urls: () => [] };
    const status = error instanceof SignalboxError ? error.status : 500;
    this.#record(this.#trace(arrived), { status: "rejected", reason }, status);
  }

  /** Hands a stored delivery to its instance again. `isRepeat` gives it an id of its own, so that the ledger lets it pass. */
  async replay(
    source: Source,
    record: DeliveryRecord,
    isRepeat: boolean,
  ): Promise<{ outcome: DeliveryOutcome; eventId: string }> {
    const now = this.#parts.clock.now();
    const eventId = isRepeat ? `${record.deliveryId}#replay-${ulid(now)}` : record.deliveryId;
    const event = readStored(source, { ...record, body: record.body ?? NO_BODY }, now);
    const target = { account: record.accountId, agent: record.agent, name: record.instance };
    return { outcome: await this.#parts.agents.deliver(target, { ...event, id: eventId }), eventId };
  }

  /** Hands an accepted delivery to its instance, as part of the same load as those that arrive. */
  async deliverLate(source: Source, delivery: LateDelivery): Promise<DeliveryOutcome> {
    const { accountId, agent, instance, deliveryId } = delivery;
    const event = readStored(source, delivery, delivery.receivedAt);
    const { outcome } = await this.#hand(
      { account: accountId, agent, name: instance },
      { ...event, id: deliveryId },
    );
    return outcome;
  }

  /** Throws for a delivery that cannot be taken. Not `async`: see `Trace`. */
  #process(trace: Trace): AnsweredAtOnce | Promise<Processed> {
    const { arrived } = trace;
    const { source, headers, body } = arrived;
    const payload = parsePayload(source.kind, headers["content-type"], body);
    const delivery: VerifiedDelivery = { headers, payload };
    if (!isFresh(source, payload, trace.now))
      return { answer: REFUSAL, result: resultOf("stale", REFUSAL.status) };
    const type = readType(source, delivery);
    const handshake = source.kind.handshake?.(delivery, type);
    const event = readEvent(source, delivery, type, body, trace.now);
    trace.event = { id: event.id, type, title: event.title, headers: event.headers };
    if (handshake != null) {
      return {
        answer: { ...handshake, contentType: JSON_TYPE },
        result: resultOf("handshake", handshake.status),
      };
    }
    const name = this.#instanceOf(arrived, delivery);
    if (typeof name !== "string") return name.then((found) => this.#deliver(source, found, event, trace));
    return this.#deliver(source, name, event, trace);
  }

  #deliver(source: Source, name: string, event: WebhookEvent, trace: Trace): Promise<Processed> {
    // Its sender was told to come back while its name was looked for: nothing has happened yet, so nothing does.
    if (trace.isWithdrawn) throw overloaded();
    trace.instance = name;
    return this.#hand({ account: source.accountId, agent: source.agent, name }, event);
  }

  #hand(target: DeliveryTarget, event: WebhookEvent): Promise<Processed> {
    this.#parts.admission.enter();
    return this.#parts.agents.deliver(target, event).then(this.#onEnd, this.#onFailure);
  }

  readonly #onEnd = (outcome: DeliveryOutcome): Processed => {
    this.#parts.admission.leave();
    return { answer: outcome.kind === "answered" ? outcome : ANSWERS[outcome.kind], outcome };
  };

  readonly #onFailure = (error: unknown): never => {
    this.#parts.admission.leave();
    throw error;
  };

  /** The entity that the delivery says it is about is the one that counts; an address that names another is refused. */
  #instanceOf(arrived: ArrivedDelivery, delivery: VerifiedDelivery): string | Promise<string> {
    const { source, urlEntity } = arrived;
    const found = findFirst(urlEntity === null ? source.entity : source.statedEntity, delivery);
    if (found !== null && urlEntity !== null && !isNameOf(urlEntity, found)) {
      throw new SignalboxError("webhook_entity_mismatch");
    }
    const entity = found ?? urlEntity;
    if (entity === null) throw new SignalboxError("webhook_missing_entity");
    if (toInstanceName(entity, source.entityForm) === null) {
      throw new SignalboxError("webhook_missing_entity", { message: "The entity cannot be used as a name" });
    }
    const { claims, agents, admission } = this.#parts;
    const { accountId: account, agent } = source;
    return claims.resolve({ account, agent }, entity, source.entityForm, (name) => {
      // A delivery that will be refused must not leave an instance behind.
      if (admission.hasRoom) agents.prepare({ account, agent, name });
    });
  }

  #record(trace: Trace, result: Result, httpStatus: number): void {
    const { event, now, startedAt } = trace;
    const { source, headers, body } = trace.arrived;
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
  readonly arrived: ArrivedDelivery;
  /** When it arrived, by the clock and by `performance`. */
  readonly now: number;
  readonly startedAt: number;
  event: Pick<WebhookEvent, "id" | "type" | "title" | "headers"> | null;
  /** Empty until it is known. */
  instance: string;
  /** True when the sender was told to come back before the instance was known. */
  isWithdrawn: boolean;
}

/** No agent heard of it. */
interface AnsweredAtOnce {
  readonly answer: Answer;
  readonly result: Result;
}

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

function toLateDelivery(trace: Trace): LateDelivery {
  const { source, headers, body } = trace.arrived;
  return {
    id: ulid(trace.now),
    accountId: source.accountId,
    source: source.name,
    agent: source.agent,
    instance: trace.instance,
    deliveryId: trace.event?.id ?? "",
    receivedAt: trace.now,
    contentType: headers["content-type"] ?? null,
    headers: trace.event?.headers ?? NO_HEADERS,
    body,
  };
}

/** The event of a delivery that was stored as it came. */
function readStored(
  source: Source,
  stored: Pick<LateDelivery, "contentType" | "headers" | "body">,
  receivedAt: number,
): WebhookEvent {
  const body = Buffer.from(stored.body);
  const headers: IncomingHttpHeaders = { ...stored.headers };
  const delivery = { headers, payload: parsePayload(source.kind, stored.contentType ?? undefined, body) };
  return readEvent(source, delivery, readType(source, delivery), body, receivedAt);
}

/** The runtime's own overload speaks to clients of all kinds; to a provider it must say when to come back. */
function withRetryAfter(error: unknown): unknown {
  const isBare =
    error instanceof SignalboxError && error.status === 503 && error.headers["retry-after"] === undefined;
  return isBare ? overloaded() : error;
}
