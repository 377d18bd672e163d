/**
 * Handles a delivery whose body has arrived: verify, parse, find the entity, deliver to the agent, record the outcome.
 *
 * Invariants:
 * 1. Nothing is parsed, claimed or created before the signature over the raw body is verified. Every delivery without a valid signature gets the
 *    same answer, whether or not the source has a secret or the entity exists (but 503 while the certificate that it names cannot be loaded). A few of them a second are listed (`RejectionBudget`).
 * 2. 200 and 202 are answered only after the agent's outcome, or the delivery itself, is durable.
 * 3. A genuine delivery that cannot be accepted now is refused with a status that makes its provider try again.
 * 4. Every answer is given in time (`PendingAnswer`), however slow the instance, the database or the disk are.
 */
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import type {
  AgentDeliveries,
  DeliveryOutcome,
  DeliveryTarget,
  SignedHeaders,
  WebhookEvent,
} from "../agents/index.ts";
import type { AlertFeedSlot } from "../contracts/alert-feed.ts";
import type { Clock } from "../core/clock.ts";
import { overloaded } from "../core/overload.ts";
import type { SharedPlaces } from "../core/shared-pool.ts";
import { type StoredError, toStoredError } from "../core/stored-error.ts";
import { ulid } from "../core/ulid.ts";
import type { LabelledCounter } from "../telemetry/instruments.ts";
import type { SpanPlace } from "../telemetry/tracing.ts";
import type { TurnSpans } from "../telemetry/turn-spans.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import {
  type Answer,
  ANSWERS,
  answerError,
  type DeliveryReason,
  type DeliveryRecord,
  explainRefusal,
  JSON_TYPE,
  type Processed,
  REFUSAL,
  type Result,
  resultOf,
} from "./delivery-record.ts";
import type { Certificates } from "./certificates.ts";
import type { EntityClaims } from "./entity-claims.ts";
import { toInstanceName } from "./entity-names.ts";
import type { LateDeliveries } from "./late-deliveries.ts";
import type { LateDelivery } from "./late-delivery-table.ts";
import { type AnswerRules, PendingAnswer } from "./pending-answer.ts";
import {
  findEntity,
  parsePayload,
  readEvent,
  readStoredEvent,
  verifySignature,
  visibleHeaders,
} from "./read-event.ts";
import { describeRejected, shownContentType } from "./rejected-request.ts";
import type { RejectionBudget } from "./rejection-budget.ts";
import type { RejectionNotice } from "./rejection-notice.ts";
import { isTaken, type Routing, type SourceRoutes } from "./routing/index.ts";
import type { SignedDelivery } from "./schemes/index.ts";
import { type SentHeaders, signedAgain, signedAsSent } from "./signed-again.ts";
import type { Source } from "./source.ts";
import type { VerifiedDelivery } from "./sources/index.ts";

export interface ArrivedDelivery extends SignedDelivery {
  readonly source: Source;
  /** The entity that the address names, or null. */
  readonly urlEntity: string | null;
  /** Releases the memory of the body; the intake calls it when the delivery's work has ended. */
  readonly releaseBody: () => void;
  /** Path and query of the request, for filters of routes. */
  readonly target?: string | undefined;
  /** Receives the record of the delivery, which is then listed in any case. */
  onRecord?(record: DeliveryRecord): void;
}

/** What is kept of a delivery that has a name. */
export interface FiredExample {
  readonly headers: Readonly<Record<string, string>>;
  readonly contentType: string | null;
  readonly target: string;
  readonly entity: string | null;
  readonly body: Uint8Array;
}

export interface IntakeParts {
  readonly agents: AgentDeliveries;
  readonly claims: EntityClaims;
  /** Verified deliveries in progress, shared by accounts. Arriving bodies do not count, so that senders without a secret cannot use up the limit. */
  readonly inFlight: SharedPlaces;
  readonly log: DeliveryLog;
  readonly rejections: RejectionBudget;
  readonly clock: Clock;
  readonly notice: RejectionNotice;
  readonly late: LateDeliveries;
  readonly routing: Pick<Routing, "of" | "store">;
  readonly certificates: Pick<Certificates, "keyOf" | "visit">;
  readonly answerWithinMs: number;
  /** Null unless deliveries are traced. */
  readonly spans: TurnSpans | null;
  readonly alertFeed: AlertFeedSlot;
  /** Counts deliveries by source and status. */
  readonly counter: Pick<LabelledCounter, "add">;
}

export class Intake {
  readonly #parts: IntakeParts;
  readonly #answerRules: AnswerRules<Progress>;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
    this.#answerRules = {
      answerWithinMs: parts.answerWithinMs,
      late: parts.late,
      toLate: (progress) => (progress.instance === "" ? null : toLateDelivery(progress)),
      onDone: (progress) => this.#release(progress),
      onEnd: (progress, { answer, outcome }) => {
        const result = resultOf(outcome.kind, answer.status);
        this.#record(
          progress,
          result,
          answer.status,
          result.status === "failed" ? answerError(answer) : null,
        );
        return answer;
      },
      onFailure: (progress, error) => this.#refuse(progress, error),
      onStored: (progress) => {
        this.#record(progress, { status: "accepted", reason: "stored" }, ANSWERS.queued.status);
        return ANSWERS.queued;
      },
      onTimeUp: (progress) => {
        progress.isWithdrawn = true;
        return this.#refuse(progress, overloaded());
      },
    };
  }

  async receive(arrived: ArrivedDelivery): Promise<Answer> {
    const progress = this.#begin(arrived);
    let signed: SignedDelivery = arrived;
    if (arrived.source.scheme.certificateUrl !== undefined) {
      try {
        signed = await this.#withCertificate(arrived);
      } catch (error) {
        this.#release(progress);
        throw this.#refuse(progress, error);
      }
    }
    const problem = verifySignature(arrived.source, signed, progress.now);
    if (problem !== null) {
      this.#release(progress);
      this.#record(progress, { status: "rejected", reason: problem }, REFUSAL.status);
      return REFUSAL;
    }
    let work: AnsweredAtOnce | Promise<Processed>;
    try {
      work = this.#process(progress);
    } catch (error) {
      this.#release(progress);
      throw this.#refuse(progress, error);
    }
    if (work instanceof Promise) return PendingAnswer.of(this.#answerRules, progress, work);
    this.#release(progress);
    this.#record(progress, work.result, work.answer.status);
    return work.answer;
  }

  /** Records a delivery whose body did not arrive completely. It is unverified, so its status is `rejected` whatever the cause. */
  recordUnread(source: Source, request: Pick<ArrivedDelivery, "headers" | "address">, error: unknown): void {
    if (!(error instanceof SignalboxError)) return;
    const reason = UNREAD_REASONS[error.id];
    if (reason === undefined) return;
    const arrived = {
      source,
      urlEntity: null,
      body: NO_BODY,
      releaseBody: () => undefined,
      urls: () => [],
      ...request,
    };
    this.#record(this.#begin(arrived), { status: "rejected", reason }, error.status);
  }

  /** Delivers a stored delivery to its instance again. With `isRepeat` it gets a new id, so that the ledger does not treat it as a duplicate. */
  async replay(
    source: Source,
    record: DeliveryRecord,
    isRepeat: boolean,
  ): Promise<{ outcome: DeliveryOutcome; eventId: string }> {
    const now = this.#parts.clock.now();
    const eventId = isRepeat ? `${record.deliveryId}#replay-${ulid(now)}` : record.deliveryId;
    const event = readStoredEvent(source, { ...record, body: record.body ?? NO_BODY }, now);
    const target = { account: record.accountId, agent: record.agent, name: record.instance };
    const signed = signedAgain(source, event, now);
    return { outcome: await this.#parts.agents.deliver(target, { ...event, id: eventId }, signed), eventId };
  }

  /** Processes a copy of a stored delivery as a new one, which needs no signature. Rejects as `receive` does. */
  async fire(
    source: Source,
    example: FiredExample,
    onRecord: (record: DeliveryRecord) => void,
  ): Promise<Answer> {
    const { headers, contentType, target, entity } = example;
    const body = Buffer.from(example.body);
    const parsed = parsePayload(source.kind, contentType ?? undefined, body);
    const delivery: VerifiedDelivery = { headers: { ...headers }, ...parsed };
    // An entity that only the address had named is named again.
    const urlEntity = findEntity(source, delivery, null) === null ? entity : null;
    const arrived: ArrivedDelivery = {
      source,
      urlEntity,
      headers: delivery.headers,
      body,
      target,
      releaseBody: () => undefined,
      urls: () => [],
      onRecord,
    };
    const progress = this.#begin(arrived);
    const read = readEvent(source, delivery, body, progress.now);
    const event = { ...read, id: `example-${ulid(progress.now)}` };
    progress.event = { id: event.id, type: event.type, title: event.title, headers: event.headers };
    let work: Promise<Processed>;
    try {
      work = this.#forward(delivery, event, progress);
    } catch (error) {
      throw this.#refuse(progress, error);
    }
    return PendingAnswer.of(this.#answerRules, progress, work);
  }

  /** Delivers an accepted delivery to its instance. It counts as in flight. `sent`: if the headers of the sender were stored. */
  async deliverLate(
    source: Source,
    delivery: LateDelivery,
    sent: SentHeaders | null = null,
  ): Promise<DeliveryOutcome> {
    const { accountId, agent, instance, deliveryId, receivedAt } = delivery;
    const event = { ...readStoredEvent(source, delivery, receivedAt), id: deliveryId };
    const now = this.#parts.clock.now();
    const signed = sent === null ? signedAgain(source, event, now) : signedAsSent(source, event, sent, now);
    return (await this.#deliver({ account: accountId, agent, name: instance }, event, signed)).outcome;
  }

  /** Rejects if the certificate cannot be loaded now. */
  async #withCertificate(arrived: ArrivedDelivery): Promise<SignedDelivery> {
    const { scheme, keys } = arrived.source;
    const url = keys.length === 0 ? null : (scheme.certificateUrl?.(arrived, keys) ?? null);
    const certificate = url === null ? null : await this.#parts.certificates.keyOf(url);
    return { ...arrived, certificate };
  }

  #begin(arrived: ArrivedDelivery): Progress {
    const now = this.#parts.clock.now();
    const { spans } = this.#parts;
    const place = spans === null ? null : spans.place(arrived.headers["traceparent"]);
    return {
      arrived,
      now,
      startedAt: performance.now(),
      event: null,
      instance: "",
      storedAs: null,
      copiedAs: null,
      isWithdrawn: false,
      place,
    };
  }

  #release({ arrived }: Progress): void {
    arrived.releaseBody();
  }

  /** Records the refusal; returns the error for the sender. */
  #refuse(progress: Progress, error: unknown): unknown {
    const status = error instanceof SignalboxError ? error.status : 500;
    this.#record(progress, explainRefusal(error), status, toStoredError(error));
    return withRetryAfter(error);
  }

  /** Throws for a delivery that is refused. Not `async`: the parsed payload must not stay in memory until the work has ended (`Progress`). */
  #process(progress: Progress): AnsweredAtOnce | Promise<Processed> {
    const { arrived, now } = progress;
    const { source, headers, body } = arrived;
    const delivery: VerifiedDelivery = {
      headers,
      ...parsePayload(source.kind, headers["content-type"], body),
    };
    if (!isFresh(source, delivery.payload, now))
      return { answer: REFUSAL, result: resultOf("stale", REFUSAL.status) };
    const event = readEvent(source, delivery, body, now);
    if (progress.place !== null) this.#parts.spans?.bind(event, progress.place);
    progress.event = { id: event.id, type: event.type, title: event.title, headers: event.headers };
    const handshake = source.kind.handshake?.(delivery, event.type);
    if (handshake != null) {
      const { status, body: text, visit } = handshake;
      const answer = { status, body: text, contentType: JSON_TYPE };
      if (visit !== undefined)
        return this.#parts.certificates
          .visit(visit)
          .then(() => ({ answer, outcome: { kind: "answered", ...answer } }));
      return { answer, result: resultOf("handshake", handshake.status) };
    }
    return this.#forward(delivery, event, progress);
  }

  #forward(delivery: VerifiedDelivery, event: WebhookEvent, progress: Progress): Promise<Processed> {
    const { arrived } = progress;
    const routes = this.#parts.routing.of(arrived.source);
    return routes === undefined
      ? this.#deliverToEntity(arrived, delivery, event, progress)
      : this.#route(routes, delivery, event, progress);
  }

  #deliverToEntity(
    arrived: ArrivedDelivery,
    delivery: VerifiedDelivery,
    event: WebhookEvent,
    progress: Progress,
  ): Promise<Processed> {
    const name = this.#instanceOf(arrived, delivery);
    if (typeof name === "string") return this.#deliverTo(name, event, progress);
    return name.then((claimed) => this.#deliverTo(claimed, event, progress));
  }

  #deliverTo(name: string, event: WebhookEvent, progress: Progress): Promise<Processed> {
    // The sender was answered 503 while the name was being claimed: the delivery has had no effect and must not have one.
    if (progress.isWithdrawn) throw overloaded();
    progress.instance = name;
    const { accountId, agent } = progress.arrived.source;
    return this.#deliver({ account: accountId, agent, name }, event, progress.arrived);
  }

  /** To the agent at once, if the only route allows it; otherwise the delivery is stored for all routes. */
  #route(
    routes: SourceRoutes,
    delivery: VerifiedDelivery,
    event: WebhookEvent,
    progress: Progress,
  ): Promise<Processed> {
    const { arrived, now } = progress;
    const { source, urlEntity } = arrived;
    const target = withoutParameter(
      arrived.target ?? `/webhooks/${source.name}`,
      source.scheme.secretParameter,
    );
    if (routes.direct !== null && isTaken(routes.direct.route, delivery, target)) {
      this.#storeForListeners(routes, delivery, event, target, progress);
      progress.arrived = { ...arrived, source: routes.direct.source };
      return this.#deliverToEntity(progress.arrived, delivery, event, progress);
    }
    const place = this.#parts.inFlight.shareOf(source.accountId);
    if (!place.take()) throw overloaded();
    progress.storedAs = ulid(now);
    const request = { source, delivery, event, urlEntity, target, now, id: progress.storedAs };
    return this.#parts.routing
      .store(request, routes)
      .then((isKnown): Processed => {
        const kind = isKnown ? "duplicate" : "queued";
        return { answer: ANSWERS[kind], outcome: { kind } };
      })
      .finally(() => place.release());
  }

  /** Neither the sender nor the agent waits for it: what cannot be stored for a listener is not worth refusing a delivery. */
  #storeForListeners(
    { listeners }: SourceRoutes,
    delivery: VerifiedDelivery,
    event: WebhookEvent,
    target: string,
    progress: Progress,
  ): void {
    if (listeners.length === 0) return;
    const { arrived, now } = progress;
    progress.copiedAs = ulid(now);
    const { source, urlEntity } = arrived;
    const request = { source, delivery, event, urlEntity, target, now, id: progress.copiedAs };
    this.#parts.routing
      .store(request, { routes: listeners, listeners, direct: null })
      .catch((error: unknown) => this.#parts.notice.listenersMissed(error));
  }

  #deliver(target: DeliveryTarget, event: WebhookEvent, signed: SignedHeaders): Promise<Processed> {
    const place = this.#parts.inFlight.shareOf(target.account);
    if (!place.take()) throw overloaded();
    return this.#parts.agents.deliver(target, event, signed).then(
      (outcome) => {
        place.release();
        return { answer: outcome.kind === "answered" ? outcome : ANSWERS[outcome.kind], outcome };
      },
      (error: unknown) => {
        place.release();
        throw error;
      },
    );
  }

  #instanceOf({ source, urlEntity }: ArrivedDelivery, delivery: VerifiedDelivery): string | Promise<string> {
    const entity = findEntity(source, delivery, urlEntity);
    if (entity === null) throw new SignalboxError("webhook_missing_entity");
    if (toInstanceName(entity.text, source.entityForm) === null) {
      throw new SignalboxError("webhook_missing_entity", { message: "The entity cannot be used as a name" });
    }
    const { claims, agents, inFlight } = this.#parts;
    const { accountId: account, agent } = source;
    return claims.resolve({ account, agent }, entity, source.entityForm, (name) => {
      // A delivery that will be refused must not create an instance.
      if (inFlight.shareOf(account).hasRoom) agents.prepare({ account, agent, name });
    });
  }

  #record(progress: Progress, result: Result, httpStatus: number, error: StoredError | null = null): void {
    const { event, startedAt, arrived } = progress;
    const { source } = arrived;
    const { counter, notice } = this.#parts;
    const isRejected = result.status === "rejected";
    this.#list(progress, result, httpStatus, error);
    counter.add(1, source.name, result.status);
    this.#parts.alertFeed.current?.delivery(source.accountId, source.name, result.status === "failed");
    if (progress.place !== null) {
      this.#parts.spans?.deliveryEnded(progress.place, {
        source: source.name,
        type: event?.type ?? "",
        deliveryId: event?.id ?? "",
        status: result.status,
        httpStatus,
        startedAt,
      });
    }
    if (isRejected) notice.rejected(source, result.reason);
  }

  #list(progress: Progress, result: Result, httpStatus: number, error: StoredError | null): void {
    const { event, now, startedAt, arrived } = progress;
    const { source, headers, body } = arrived;
    const { log, clock, rejections } = this.#parts;
    const isRejected = result.status === "rejected";
    const alsoRejected = isRejected ? rejections.take(source.name, arrived.onRecord !== undefined) : 0;
    if (alsoRejected === null) return;
    const record: DeliveryRecord = {
      id: progress.storedAs ?? progress.copiedAs ?? ulid(clock.now()),
      accountId: source.accountId,
      source: source.name,
      ...result,
      httpStatus,
      receivedAt: now,
      durationMs: performance.now() - startedAt,
      deliveryId: event?.id ?? "",
      type: event?.type ?? "",
      title: event?.title ?? "",
      agent: progress.storedAs === null ? source.agent : "",
      instance: progress.instance,
      contentType: isRejected ? shownContentType(headers) : (headers["content-type"] ?? null),
      headers:
        event?.headers ?? (isRejected ? NO_HEADERS : visibleHeaders(headers, source.scheme.secretHeader)),
      bodyBytes: body.length,
      // A delivery that is stored for routes has its body there, except for a list that was divided.
      body: isRejected || (progress.storedAs !== null && !source.isBatch) ? null : body,
      error,
      request: isRejected
        ? describeRejected({ source, headers, body, address: arrived.address?.() ?? null }, alsoRejected)
        : null,
      replayedAt: null,
    };
    log.record(record);
    arrived.onRecord?.(record);
  }
}

/**
 * A delivery in progress: what its record needs, and no more. A delivery waits for its sync far longer than it runs; a payload that stayed
 * reachable for that time would be most of what the garbage collector copies.
 */
interface Progress {
  /** With the source of the route, if the delivery goes to the agent of a route at once. */
  arrived: ArrivedDelivery;
  /** Time of arrival, by the clock and by `performance`. */
  readonly now: number;
  readonly startedAt: number;
  event: Pick<WebhookEvent, "id" | "type" | "title" | "headers"> | null;
  /** Empty until the instance is known. */
  instance: string;
  /** Id of the delivery that is stored for routes; null if none is. */
  storedAs: string | null;
  /** Id of the copy that is stored for listeners, while the agent receives the delivery at once. */
  copiedAs: string | null;
  /** True when the sender was answered 503 before the instance was known. */
  isWithdrawn: boolean;
  /** Null unless deliveries are traced. */
  readonly place: SpanPlace | null;
}

/** An answer that involves no agent. */
interface AnsweredAtOnce {
  readonly answer: Answer;
  readonly result: Result;
}

const NO_HEADERS = {};
const NO_BODY = Buffer.from("");

const UNREAD_REASONS: Readonly<Partial<Record<ErrorName, DeliveryReason>>> = {
  body_too_large: "body_too_large",
  request_timeout: "body_timeout",
  malformed_http: "body_broke_off",
  overloaded: "overloaded",
};

/** For providers that sign a time inside the payload: a payload without the time is refused like a stale one. */
function isFresh(source: Source, payload: unknown, now: number): boolean {
  if (source.kind.sentAt === undefined || source.scheme !== source.kind.scheme) return true;
  const sentAt = source.kind.sentAt(payload);
  return sentAt !== null && Math.abs(now - sentAt) <= source.windowMs;
}

function toLateDelivery({ arrived, now, instance, event }: Progress): LateDelivery {
  const { source, headers, body } = arrived;
  return {
    id: ulid(now),
    accountId: source.accountId,
    source: source.name,
    agent: source.agent,
    instance,
    deliveryId: event?.id ?? "",
    receivedAt: now,
    contentType: headers["content-type"] ?? null,
    headers: event?.headers ?? NO_HEADERS,
    body,
  };
}

/** A credential in the address is not stored, shown or passed on. */
function withoutParameter(target: string, name: string | undefined): string {
  const at = target.indexOf("?");
  if (name === undefined || at < 0) return target;
  const query = new URLSearchParams(target.slice(at));
  query.delete(name);
  return query.size === 0 ? target.slice(0, at) : `${target.slice(0, at)}?${query.toString()}`;
}

/** The agents' own refusals have no `Retry-After`, which providers need. */
function withRetryAfter(error: unknown): unknown {
  const isBare =
    error instanceof SignalboxError && error.status === 503 && error.headers["retry-after"] === undefined;
  return isBare ? overloaded() : error;
}
