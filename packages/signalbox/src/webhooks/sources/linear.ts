/** Linear: one instance for each organisation. The signed time is in the body, and the documented window is a minute. */
import { linearScheme } from "../schemes/index.ts";
import { fieldAt, firstLine, firstTextAt, rules, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const linear: SourceKind = {
  name: "linear",
  scheme: linearScheme,
  entity: rules("body:organizationId", "body:data.teamId"),
  eventType: rules("header:linear-event", "body:type"),
  action: rules("body:action"),
  // `webhookId` identifies the webhook, not the delivery: with it every event after the first would be a duplicate.
  deliveryId: rules("header:linear-delivery"),
  windowSeconds: 60,
  sentAt(payload) {
    const time = fieldAt(payload, "webhookTimestamp");
    return typeof time === "number" ? time : null;
  },
  describe({ payload }, type, action) {
    const name = firstTextAt(
      payload,
      "data.title",
      "data.name",
      "data.issue.title",
      "notification.issue.title",
    );
    const head = words(type, firstTextAt(payload, "data.identifier", "data.issue.identifier"), action);
    return {
      title: name === null ? head : `${head}: ${name}`,
      description: firstLine(firstTextAt(payload, "data.description", "data.body", "data.state.name")),
      url: firstTextAt(payload, "url", "data.url"),
      actor: firstTextAt(payload, "actor.name", "actor.email", "data.user.name", "actor.id"),
    };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample(
      {
        action: "create",
        type: "Issue",
        organizationId: entity,
        webhookTimestamp: now,
        actor: { name: "Sample" },
        data: { identifier: "SMP-1", title: "A sample issue", url: "https://linear.app/sample/issue/SMP-1" },
      },
      { "linear-event": "Issue", "linear-delivery": deliveryId },
    ),
};
