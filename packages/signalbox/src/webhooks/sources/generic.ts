/** Any sender that signs the body with a shared secret; also used for `/webhooks/<entity>`. */
import { genericScheme } from "../schemes/index.ts";
import { firstTextAt, guesses, rules, type VerifiedDelivery } from "./rule.ts";
import { jsonSample, type EventText, type SourceKind } from "./source-kind.ts";

export const generic: SourceKind = {
  name: "generic",
  scheme: genericScheme,
  // The header is not signed, and a proxy may set one of this name: it does not contradict an address.
  entity: [...rules("body:entity_id", "body:entity.id"), ...guesses("header:x-entity-id")],
  eventType: rules("header:x-event-type", "body:type"),
  action: rules("body:action"),
  deliveryId: rules("header:x-event-id", "header:idempotency-key", "header:webhook-id", "body:id"),
  describe: describeByCommonNames,
  sample: ({ entity, deliveryId, now }) =>
    jsonSample(
      {
        id: deliveryId,
        type: "sample.created",
        entity_id: entity,
        title: "A sample event",
        created_at: new Date(now).toISOString(),
      },
      { "x-event-type": "sample.created", "x-event-id": deliveryId },
    ),
};

/** Reads the names that senders commonly use, for payloads without a fixed form. */
export function describeByCommonNames({ payload }: VerifiedDelivery): EventText {
  return {
    title: firstTextAt(payload, "title", "data.title", "subject", "name", "data.name"),
    description: firstTextAt(payload, "description", "data.description", "message", "data.message", "text"),
    url: firstTextAt(payload, "url", "data.url", "html_url", "link"),
    actor: firstTextAt(payload, "actor", "actor.name", "user.name", "user", "sender.login", "data.user"),
  };
}
