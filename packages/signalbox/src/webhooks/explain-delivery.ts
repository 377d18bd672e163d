/** The reasons of the inspector's list in words, with what to do. */
import type { DeliveryReason } from "./delivery-record.ts";

const EXPLANATIONS: Readonly<Record<DeliveryReason, string | null>> = {
  processed: null,
  queued: null,
  stored: "The instance was slow: the delivery was stored, answered 202, and handled later",
  answered: null,
  handshake: "A probe of the provider, which no agent receives",
  no_secret: "The source has no secret, so that every delivery is refused",
  signature_missing: "The request has no signature in the header that the source expects",
  signature_malformed: "The signature does not have the form that the source expects",
  signature_mismatch:
    "The signature does not belong to this body and secret: the secrets differ, or the body was changed on its way",
  certificate_refused: "The certificate that the delivery names is not one of the vendor, or not valid",
  address_refused: "The address of the sender is not in the list of the source",
  timestamp_outside_window: "The signed time is outside of the replay window: an old copy, or a wrong clock",
  invalid_payload: "The signature is valid, but the body is no event of the source",
  missing_entity:
    "The signature is valid, but neither the address nor the rules of the source name an entity",
  entity_mismatch: "The address and the body name different entities",
  unsupported_media_type: "The signature is valid, but the body is neither JSON nor a form of the source",
  body_too_large: "The body is larger than webhooks.maxBodyBytes",
  body_timeout: "The body did not arrive within webhooks.bodyTimeoutMs",
  body_broke_off: "The sender closed the connection before the whole body had arrived",
  handler_failed: "The agent's handler threw an error; nothing of it was kept, and the provider may retry",
  refused_by_agent: "The agent refused the event",
  overloaded: "The service could not handle or store the delivery in time; the provider may retry",
};

/** Null for a delivery that needs no explanation. */
export function explainReason(reason: DeliveryReason | null): string | null {
  return reason === null ? null : (EXPLANATIONS[reason] ?? null);
}
