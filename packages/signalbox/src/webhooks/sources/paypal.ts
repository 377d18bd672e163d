/** PayPal: payments, orders, subscriptions, disputes. One instance for each payer; for events without one, for each resource. */
import { paypalScheme } from "../schemes/index.ts";
import { firstTextAt, guesses, rules } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const paypal: SourceKind = {
  name: "paypal",
  scheme: paypalScheme,
  entity: [
    ...rules("body:resource.payer.payer_id", "body:resource.subscriber.payer_id"),
    ...guesses("body:resource.id", "body:resource.dispute_id", "fixed:paypal"),
  ],
  eventType: rules("body:event_type"),
  deliveryId: rules("body:id"),
  describe({ payload }, type) {
    return {
      title: firstTextAt(payload, "summary") ?? type,
      description: firstTextAt(payload, "resource.status", "resource.reason_code"),
      url: null,
      actor: firstTextAt(payload, "resource.payer.email_address", "resource.subscriber.email_address"),
    };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample({
      id: deliveryId,
      event_type: "PAYMENT.CAPTURE.COMPLETED",
      resource_type: "capture",
      summary: "A sample payment",
      create_time: new Date(now).toISOString(),
      resource: { id: "SAMPLE", status: "COMPLETED", payer: { payer_id: entity } },
    }),
};
