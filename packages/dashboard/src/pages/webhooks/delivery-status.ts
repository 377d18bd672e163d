/** What became of a delivery, and what to do about it. */
import type { Tone } from "../../components/badge.tsx";
import type { DeliveryStatus } from "./webhook.ts";

export const STATUS_TONES: Readonly<Record<DeliveryStatus, Tone>> = {
  accepted: "good",
  duplicate: "neutral",
  rejected: "bad",
  failed: "warn",
};

const REASONS: Readonly<Record<string, string>> = {
  processed: "the agent handled it",
  queued: "the agent queued it",
  answered: "the agent answered it",
  handshake: "a probe of the provider, answered",
  no_secret: "no secret is set for this source; set its variable and start again",
  signature_missing: "it came without a signature; the provider has no secret, or a proxy drops the header",
  signature_malformed: "the signature does not have the form the provider uses",
  signature_mismatch:
    "the signature is wrong: another secret at the provider, or the body was changed on the way",
  timestamp_outside_window: "signed too long ago or in the future: a replay, or a clock is wrong",
  invalid_payload: "the body is not valid JSON (or form)",
  missing_entity: "the payload names no entity, so no instance could be chosen",
  entity_mismatch: "the address and the payload name different entities",
  unsupported_media_type: "the body is neither JSON nor a form",
  handler_failed: "the agent's handler threw; the provider will send it again",
  refused_by_agent: "the agent refused the event, with the answer it chose",
  overloaded: "too much at once; the provider will send it again",
};

export function describeReason(reason: string | null): string {
  return reason === null ? "" : (REASONS[reason] ?? reason.replaceAll("_", " "));
}
