/** Amazon SNS: notifications of a topic, which is the entity. Confirmations of subscriptions are answered here: the intake visits their address. */
import { snsScheme, snsUrl } from "../schemes/index.ts";
import { fieldAt, firstTextAt, payloadRule, rules, textAt } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const sns: SourceKind = {
  name: "sns",
  scheme: snsScheme,
  entity: rules("body:TopicArn"),
  eventType: [
    payloadRule("body: the type in the message, if it is JSON", ({ payload }) =>
      firstTextAt(innerOf(payload), "detail-type", "eventType", "notificationType", "type"),
    ),
    ...rules("body:Type"),
  ],
  deliveryId: rules("body:MessageId"),
  describe({ payload }, type) {
    return {
      title: firstTextAt(payload, "Subject") ?? type,
      description: textAt(payload, "Message"),
      url: null,
      actor: null,
    };
  },
  handshake({ payload }) {
    switch (fieldAt(payload, "Type")) {
      case "SubscriptionConfirmation": {
        const visit = snsUrl(fieldAt(payload, "TopicArn"), fieldAt(payload, "SubscribeURL"));
        return visit === null ? null : { status: 200, body: "{}", visit };
      }
      case "UnsubscribeConfirmation":
        return { status: 200, body: "{}" };
      default:
        return null;
    }
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample({
      Type: "Notification",
      MessageId: deliveryId,
      TopicArn: entity,
      Subject: "A sample notification",
      Message: JSON.stringify({ "detail-type": "sample.created" }),
      Timestamp: new Date(now).toISOString(),
    }),
};

function innerOf(payload: unknown): unknown {
  const message = fieldAt(payload, "Message");
  if (typeof message !== "string" || !message.startsWith("{")) return null;
  try {
    return JSON.parse(message) as unknown;
  } catch {
    return null;
  }
}
