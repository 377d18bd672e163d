/** Badge colors and descriptions for the status and the reason of a delivery. */
import type { Tone } from "../../components/badge.tsx";
import type { DeliveryStatus } from "./webhook.ts";

export const STATUS_TONES: Readonly<Record<DeliveryStatus, Tone>> = {
  accepted: "good",
  duplicate: "neutral",
  rejected: "warn",
  failed: "bad",
};

interface Reason {
  readonly summary: string;
  /** What to do, or what happens next. */
  readonly advice?: string;
}

const REASONS: Readonly<Record<string, Reason>> = {
  processed: { summary: "processed by the agent" },
  queued: { summary: "queued by the agent" },
  stored: { summary: "stored; the agent processes it as soon as it can" },
  answered: { summary: "answered by the agent" },
  handshake: { summary: "verification request, answered" },
  no_secret: {
    summary: "no secret is set for this source",
    advice: "Set its environment variable and restart the service.",
  },
  signature_missing: {
    summary: "the signature is missing",
    advice: "Set the secret at the sender, and check that no proxy removes the signature header.",
  },
  signature_malformed: { summary: "the signature has an invalid format" },
  signature_mismatch: {
    summary: "the signature does not match",
    advice: "Check that the sender uses the same secret and that no proxy changes the body.",
  },
  timestamp_outside_window: {
    summary: "the timestamp is outside the allowed window",
    advice: "The delivery was replayed, or the clock of the sender or of this machine is wrong.",
  },
  invalid_payload: { summary: "the body is not valid JSON or form data" },
  missing_entity: {
    summary: "the payload does not contain an entity",
    advice: "Without an entity, the delivery cannot be routed to an instance.",
  },
  entity_mismatch: {
    summary: "the URL and the payload contain different entities",
    advice: "Use the same entity in both, or omit it from the URL.",
  },
  unsupported_media_type: { summary: "the content type is neither JSON nor form data" },
  handler_failed: { summary: "the agent's handler threw an error", advice: "The sender will retry." },
  refused_by_agent: { summary: "rejected by the agent" },
  overloaded: { summary: "the service was overloaded", advice: "The sender will retry." },
};

/** A short description of a reason code of the API. Unknown codes are shown as words. */
export function describeReason(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason]?.summary ?? reason.replaceAll("_", " "));
}

export function adviceForReason(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason]?.advice ?? "");
}
