/** Standard Webhooks, and Svix, which differs only in the names of its headers. */
import { type Scheme, standardScheme, svixScheme } from "../schemes/index.ts";
import { describeByCommonNames } from "./generic.ts";
import { guesses, rules } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const standard = createStandardKind("standard", standardScheme, ["header:webhook-id"]);
export const svix = createStandardKind("svix", svixScheme, ["header:svix-id", "header:webhook-id"]);

function createStandardKind(name: string, scheme: Scheme, deliveryId: readonly string[]): SourceKind {
  return {
    name,
    scheme,
    // The convention is `{type, timestamp, data}`, with the id of the subject in `data`. Only the first two fields certainly name the entity.
    entity: [
      ...rules("body:entity_id", "body:data.entity_id"),
      ...guesses("body:data.customer_id", "body:data.id"),
    ],
    eventType: rules("body:type", "body:event_type", "body:eventType"),
    action: rules("body:action"),
    deliveryId: rules(...deliveryId),
    describe: describeByCommonNames,
    sample: ({ entity, now }) =>
      jsonSample({
        type: "sample.created",
        timestamp: new Date(now).toISOString(),
        data: { id: entity, title: "A sample event" },
      }),
  };
}
