/** How a delivery can end: the answer its sender receives, and the record that the inspector lists. */
import { SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../agents/index.ts";
import type { StoredError } from "../core/stored-error.ts";
import { renderError } from "../http/render-error.ts";
import type { RejectedRequest } from "./rejected-request.ts";
import type { SignatureProblem } from "./schemes/index.ts";

/**
 * `accepted`: an agent handled or queued the delivery, or a provider's probe was answered. `duplicate`: the agent had handled it before.
 * `rejected`: it was refused and changed nothing. `failed`: it was genuine, but the agent's handler failed or the service was overloaded; the
 * provider tries again.
 */
export const DELIVERY_STATUSES = ["accepted", "duplicate", "rejected", "failed"] as const;
export type DeliveryStatus = (typeof DELIVERY_STATUSES)[number];

export type DeliveryReason =
  | SignatureProblem
  | "processed"
  | "queued"
  | "stored"
  | "answered"
  | "handshake"
  | "invalid_payload"
  | "missing_entity"
  | "entity_mismatch"
  | "unsupported_media_type"
  | "body_too_large"
  | "body_timeout"
  | "body_broke_off"
  | "handler_failed"
  | "refused_by_agent"
  | "overloaded";

export interface DeliveryRecord {
  /** ULID; records are ordered by it. */
  readonly id: string;
  readonly accountId: string;
  readonly source: string;
  readonly status: DeliveryStatus;
  readonly reason: DeliveryReason | null;
  readonly httpStatus: number;
  /** Milliseconds since the epoch. */
  readonly receivedAt: number;
  readonly durationMs: number;
  /** Empty when the delivery was refused before its event was read. */
  readonly deliveryId: string;
  readonly type: string;
  readonly title: string;
  readonly agent: string;
  /** Empty when no instance was reached. */
  readonly instance: string;
  readonly contentType: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly bodyBytes: number;
  /** The signed bytes; null for rejected deliveries and for bodies too large to keep. */
  readonly body: Uint8Array | null;
  /** Why the delivery failed or was refused; for operators, never for its sender. */
  readonly error: StoredError | null;
  /** Of a rejected delivery. */
  readonly request: RejectedRequest | null;
  /** When an operator has replayed the failed delivery with success. */
  readonly replayedAt: number | null;
}

export interface DeliveryFilter {
  readonly source?: string | undefined;
  readonly status?: DeliveryStatus | undefined;
  readonly instance?: string | undefined;
  readonly type?: string | undefined;
  readonly deliveryId?: string | undefined;
  readonly reason?: string | undefined;
  /** Times of arrival, milliseconds since the epoch: from `since` on, and before `until`. */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** A part of the instance, the ids, the type, the title or the body, whatever its case; the body with its case. */
  readonly search?: string | undefined;
  /** True for failed deliveries that were neither replayed nor accepted later. */
  readonly isUnresolved?: boolean | undefined;
}

function contains({ id, instance, deliveryId, type, title, body }: DeliveryRecord, search: string): boolean {
  const wanted = search.toLowerCase();
  return (
    [id, instance, deliveryId, type, title].some((text) => text.toLowerCase().includes(wanted)) ||
    (body !== null && Buffer.from(body).includes(search))
  );
}

export function matches(record: DeliveryRecord, filter: DeliveryFilter): boolean {
  return (
    (filter.reason === undefined || record.reason === filter.reason) &&
    (filter.since === undefined || record.receivedAt >= filter.since) &&
    (filter.until === undefined || record.receivedAt < filter.until) &&
    (filter.isUnresolved !== true || (record.status === "failed" && record.replayedAt === null)) &&
    (filter.search === undefined || contains(record, filter.search)) &&
    (filter.source === undefined || record.source === filter.source) &&
    (filter.status === undefined || record.status === filter.status) &&
    (filter.instance === undefined || record.instance === filter.instance) &&
    (filter.type === undefined || record.type === filter.type) &&
    (filter.deliveryId === undefined || record.deliveryId === filter.deliveryId)
  );
}

export interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

/** How a delivery that reached its instance ended. */
export interface Processed {
  readonly answer: Answer;
  readonly outcome: DeliveryOutcome;
}

export type Result = Pick<DeliveryRecord, "status" | "reason">;

const MAX_SHOWN_ANSWER = 500;

export const JSON_TYPE = "application/json; charset=utf-8";

export const ANSWERS: Readonly<Record<"processed" | "queued" | "duplicate", Answer>> = {
  processed: { status: 200, contentType: JSON_TYPE, body: '{"status":"processed"}' },
  queued: { status: 202, contentType: JSON_TYPE, body: '{"status":"queued"}' },
  duplicate: { status: 200, contentType: JSON_TYPE, body: '{"status":"duplicate"}' },
};

/**
 * The answer to every delivery without a valid signature. A constant that is returned, not an error that is thrown: a flood of forged
 * deliveries takes this path, and the stack trace of an error costs as much as the verification.
 */
export const REFUSAL: Answer = (() => {
  const { status, body } = renderError(new SignalboxError("webhook_invalid_signature"), "envelope", "");
  return { status, contentType: JSON_TYPE, body };
})();

/** `status` is the status of the sender's answer. */
export function resultOf(outcome: DeliveryOutcome["kind"] | "handshake" | "stale", status: number): Result {
  if (outcome === "stale") return { status: "rejected", reason: "timestamp_outside_window" };
  // The agent's answer says that it did not accept the event.
  if (outcome === "answered" && (status < 200 || status > 299))
    return { status: "failed", reason: "refused_by_agent" };
  return outcome === "duplicate"
    ? { status: "duplicate", reason: null }
    : { status: "accepted", reason: outcome };
}

/** The answer of an agent that refused the event. */
export function answerError({ status, body }: Answer): StoredError {
  const shown = body.length > MAX_SHOWN_ANSWER ? `${body.slice(0, MAX_SHOWN_ANSWER)}…` : body;
  const message = `the agent answered ${status}${shown === "" ? "" : `: ${shown}`}`;
  return { name: "Response", message, stack: null };
}

export function explainRefusal(error: unknown): Result {
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
    case "storage_unavailable":
      return { status: "failed", reason: "overloaded" };
    default:
      return { status: "failed", reason: "handler_failed" };
  }
}
