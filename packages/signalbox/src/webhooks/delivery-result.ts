/** What senders are answered, and what the inspector lists, for each way a delivery can end. */
import { SignalboxError } from "@signalbox/protocol";
import type { DeliveryOutcome } from "../agents/index.ts";
import { renderError } from "../http/render-error.ts";
import type { DeliveryRecord } from "./delivery-record.ts";

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

export const JSON_TYPE = "application/json; charset=utf-8";

export const ANSWERS: Readonly<Record<"processed" | "queued" | "duplicate", Answer>> = {
  processed: { status: 200, contentType: JSON_TYPE, body: '{"status":"processed"}' },
  queued: { status: 202, contentType: JSON_TYPE, body: '{"status":"queued"}' },
  duplicate: { status: 200, contentType: JSON_TYPE, body: '{"status":"duplicate"}' },
};

/**
 * What everyone gets whose signature does not hold. Written once and returned, not thrown: under an attack this is the hottest path there
 * is, and an error's stack trace would cost as much as the whole verification.
 */
export const REFUSAL: Answer = (() => {
  const { status, body } = renderError(new SignalboxError("webhook_invalid_signature"), "envelope", "");
  return { status, contentType: JSON_TYPE, body };
})();

/** `status` is what the sender is answered. */
export function resultOf(outcome: DeliveryOutcome["kind"] | "handshake" | "stale", status: number): Result {
  if (outcome === "stale") return { status: "rejected", reason: "timestamp_outside_window" };
  // The sender was told that its event was not taken.
  if (outcome === "answered" && (status < 200 || status > 299))
    return { status: "failed", reason: "refused_by_agent" };
  return outcome === "duplicate"
    ? { status: "duplicate", reason: null }
    : { status: "accepted", reason: outcome };
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
