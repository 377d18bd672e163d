/** Shopify: one instance for each shop. Topic, shop and delivery id are headers; the body is the resource. */
import { shopifyScheme } from "../schemes/index.ts";
import { firstTextAt, foldedRules, rules, textAt, words } from "./rule.ts";
import { jsonSample, type SourceKind } from "./source-kind.ts";

export const shopify: SourceKind = {
  name: "shopify",
  scheme: shopifyScheme,
  entity: foldedRules(
    "header:x-shopify-shop-domain",
    "header:shopify-shop-domain",
    "body:shop_domain",
    "body:myshopify_domain",
  ),
  eventType: rules("header:x-shopify-topic", "header:shopify-topic"),
  deliveryId: rules("header:x-shopify-webhook-id", "header:shopify-webhook-id"),
  describe({ payload }, type) {
    const amount = firstTextAt(payload, "current_total_price", "total_price", "price");
    const name = firstTextAt(payload, "name", "title", "email", "id");
    return {
      title: words(type, name, amount && `(${words(amount, textAt(payload, "currency"))})`),
      description: firstTextAt(payload, "note", "financial_status", "status", "product_type"),
      url: firstTextAt(payload, "order_status_url", "url"),
      actor: firstTextAt(payload, "customer.email", "email", "contact_email", "vendor"),
    };
  },
  sample: ({ entity, deliveryId, now }) =>
    jsonSample(
      {
        id: 1,
        name: "#1001",
        email: "buyer@example.com",
        total_price: "42.00",
        currency: "EUR",
        financial_status: "paid",
        created_at: new Date(now).toISOString(),
      },
      {
        "x-shopify-topic": "orders/create",
        "x-shopify-shop-domain": entity,
        "x-shopify-webhook-id": deliveryId,
      },
    ),
};
