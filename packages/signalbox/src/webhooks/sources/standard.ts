/** Standard Webhooks, and Svix, which differs in the names of its headers only. */
import { type Scheme, standardScheme, svixScheme } from "../schemes/index.ts";
import { describeLoosely } from "./generic.ts";
import { guesses, rules } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const standard = createStandardKind("standard", standardScheme, ["header:webhook-id"]);
export const svix = createStandardKind("svix", svixScheme, ["header:svix-id", "header:webhook-id"]);

function createStandardKind(name: string, scheme: Scheme, deliveryId: readonly string[]): SourceKind {
  return {
    name,
    scheme,
    // The convention is `{type, timestamp, data}`; what an event is about has its id in `data`.
    // Only the first two are sure to be meant as the entity; the others are the best there is where the address names none.
    entity: [
      ...rules("body:entity_id", "body:data.entity_id"),
      ...guesses("body:data.customer_id", "body:data.id"),
    ],
    eventType: rules("body:type", "body:event_type", "body:eventType"),
    action: rules("body:action"),
    deliveryId: rules(...deliveryId),
    describe: describeLoosely,
    sample: ({ entity, now }) =>
      jsonSample({
        type: "sample.created",
        timestamp: new Date(now).toISOString(),
        data: { id: entity, title: "A sample event" },
      }),
  };
}
