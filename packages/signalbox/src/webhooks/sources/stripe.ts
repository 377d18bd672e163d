/** Stripe: one instance for each customer; events of Connect accounts without a customer go to the account. */
import { stripeScheme } from "../schemes/index.ts";
import { fieldAt, firstTextAt, idAt, parseRule, payloadRule, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const stripe: SourceKind = {
  name: "stripe",
  scheme: stripeScheme,
  entity: [
    parseRule("body:data.object.customer"),
    // An expanded customer is an object.
    parseRule("body:data.object.customer.id"),
    payloadRule("body:data.object.id when the object is a customer", (delivery) =>
      textAt(delivery.payload, "data.object.object") === "customer" ? idAt(delivery, "data.object.id") : null,
    ),
    parseRule("body:account"),
  ],
  eventType: [parseRule("body:type")],
  deliveryId: [parseRule("body:id")],
  describe({ payload }, type) {
    const object = textAt(payload, "data.object.object");
    const amount = amountOf(payload);
    return {
      title: words(type, amount && `(${amount})`),
      description: firstTextAt(
        payload,
        "data.object.description",
        "data.object.billing_reason",
        "data.object.status",
      ),
      url: firstTextAt(
        payload,
        "data.object.hosted_invoice_url",
        "data.object.receipt_url",
        "data.object.url",
      ),
      actor: firstTextAt(
        payload,
        "data.object.customer_email",
        ...(object === "customer" ? ["data.object.email", "data.object.name"] : []),
        "data.object.billing_details.email",
        "data.object.customer",
      ),
    };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample({
      id: deliveryId,
      object: "event",
      type: "invoice.paid",
      created: Math.floor(now / 1000),
      livemode: false,
      data: {
        object: {
          id: "in_sample",
          object: "invoice",
          customer: entity,
          amount_paid: 4200,
          currency: "eur",
          status: "paid",
        },
      },
    }),
};

/** Currencies without a minor unit. Stripe sends amounts of all others in hundredths. */
const ZERO_DECIMAL = new Set("bif clp djf gnf jpy kmf krw mga pyg rwf ugx vnd vuv xaf xof xpf".split(" "));

function amountOf(payload: unknown): string | null {
  const currency = textAt(payload, "data.object.currency");
  const amount = ["amount_paid", "amount_total", "amount_due", "amount"]
    .map((name) => fieldAt(payload, `data.object.${name}`))
    .find((value) => typeof value === "number");
  if (currency === null || typeof amount !== "number") return null;
  const shown = ZERO_DECIMAL.has(currency) ? String(amount) : (amount / 100).toFixed(2);
  return `${shown} ${currency.toUpperCase()}`;
}
