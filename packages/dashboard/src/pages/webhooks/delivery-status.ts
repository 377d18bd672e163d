/** Badge colors and descriptions for the status and the reason of a delivery. */
import type { Tone } from "../../components/badge.tsx";
import type { DeliveryStatus } from "./webhook.ts";

export const STATUS_TONES: Readonly<Record<DeliveryStatus, Tone>> = {
  accepted: "good",
  duplicate: "neutral",
  rejected: "bad",
  failed: "warn",
};

const REASONS: Readonly<Record<string, string>> = {
  processed: "processed by the agent",
  queued: "queued by the agent",
  answered: "answered by the agent",
  handshake: "verification request of the provider, answered",
  no_secret: "no secret is set for this source. Set its environment variable and restart the service",
  signature_missing:
    "the signature is missing. Set the secret at the provider, and check that no proxy removes the header",
  signature_malformed: "the signature has an invalid format",
  signature_mismatch:
    "the signature does not match. The provider uses a different secret, or a proxy changed the body",
  timestamp_outside_window:
    "the timestamp is outside the allowed window. The delivery is a replay, or a clock is wrong",
  invalid_payload: "the body is not valid JSON or form data",
  missing_entity: "the payload does not contain an entity, so the delivery cannot be routed to an instance",
  entity_mismatch: "the URL and the payload contain different entities",
  unsupported_media_type: "the content type is neither JSON nor form data",
  handler_failed: "the agent's handler threw an error. The provider will retry",
  refused_by_agent: "rejected by the agent",
  overloaded: "the service was overloaded. The provider will retry",
};

export function describeReason(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason] ?? reason.replaceAll("_", " "));
}
