/**
 * SendGrid's event webhook: a list of events of mails. One instance for each receiver's address if the source divides lists (`batch`); otherwise a list is
 * one event of the entity `sendgrid`.
 */
import { sendgridScheme } from "../schemes/index.ts";
import { firstTextAt, guesses, payloadRule, rules, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

const MIXED = "batch";

export const sendgrid: SourceKind = {
  name: "sendgrid",
  scheme: sendgridScheme,
  entity: [...rules("body:email"), ...guesses("fixed:sendgrid")],
  eventType: [
    ...rules("body:event"),
    payloadRule("body: the event of all items", ({ payload }) => {
      if (!Array.isArray(payload)) return null;
      const events = new Set(payload.map((item) => textAt(item, "event")));
      const [first = null] = events;
      return events.size === 1 ? first : MIXED;
    }),
  ],
  deliveryId: rules("body:sg_event_id"),
  describe({ payload }, type) {
    const email = firstTextAt(payload, "email", "0.email");
    return {
      title: words(type, email && `for ${email}`),
      description: firstTextAt(payload, "reason", "response", "0.reason", "0.response"),
      url: firstTextAt(payload, "url", "0.url"),
      actor: email,
    };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample([
      {
        email: entity,
        timestamp: Math.floor(now / 1000),
        event: "delivered",
        sg_event_id: deliveryId,
        sg_message_id: "sample.filter0001.0.0",
      },
    ]),
};
