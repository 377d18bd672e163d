/** The schemes that sign the raw body alone, against the packages of GitHub, Shopify and Linear. */
import { IncomingMessage } from "node:http";
import { Socket } from "node:net";
import { LinearWebhookClient } from "@linear/sdk/webhooks";
import { sign as octokitSign, verify as octokitVerify } from "@octokit/webhooks-methods";
import "@shopify/shopify-api/adapters/node";
import { shopifyApi } from "@shopify/shopify-api";
import { expect, it } from "vitest";
import {
  createBodyHmacScheme,
  genericScheme,
  githubScheme,
  linearScheme,
  pagerdutyScheme,
  shopifyScheme,
} from "./index.ts";
import { ADDRESS, BODY, describeScheme, NOW, SECRET, verdict } from "./scheme-contract.ts";

describeScheme({ title: "generic", scheme: genericScheme, secret: SECRET });
describeScheme({
  title: "github",
  scheme: githubScheme,
  secret: SECRET,
  vendor: (headers, body) => octokitVerify(SECRET, body.toString(), headers["x-hub-signature-256"] ?? ""),
});
describeScheme({
  title: "shopify",
  scheme: shopifyScheme,
  secret: SECRET,
  vendor: async (headers, body) => (await shopifyValidate(headers, body)).valid,
});
describeScheme({
  title: "linear",
  scheme: linearScheme,
  secret: SECRET,
  body: Buffer.from(JSON.stringify({ type: "Issue", webhookTimestamp: Date.now() })),
  vendor: (headers, body) => new LinearWebhookClient(SECRET).verify(body, headers["linear-signature"] ?? ""),
});
describeScheme({ title: "pagerduty", scheme: pagerdutyScheme, secret: SECRET, isList: true });
describeScheme({
  title: "an HMAC of the configuration",
  scheme: createBodyHmacScheme({
    name: "gitea",
    headers: ["x-gitea-signature"],
    algorithm: "sha512",
    encoding: "base64",
    prefix: "sig:",
  }),
  secret: SECRET,
});

it("github and generic accept what @octokit/webhooks-methods signs", async () => {
  const headers = { "x-hub-signature-256": await octokitSign(SECRET, BODY.toString()) };
  expect(verdict(githubScheme, { headers, body: BODY }, SECRET)).toBeNull();
  expect(verdict(genericScheme, { headers, body: BODY }, SECRET)).toBeNull();
});

it.each([
  ["generic", genericScheme, ["x-signature", "x-hub-signature-256"]],
  ["shopify", shopifyScheme, ["x-shopify-hmac-sha256", "shopify-hmac-sha256"]],
])("%s accepts one valid signature in either of its two headers, and none without", (_, scheme, names) => {
  const sign = (secret: string) =>
    Object.values(scheme.sign({ secret, body: BODY, now: NOW, deliveryId: "d", url: ADDRESS }).headers)[0] ??
    "";
  const right = sign(SECRET);
  const wrong = sign("another secret");
  for (const [first, second, expected] of [
    [right, wrong, null],
    [wrong, right, null],
    [wrong, wrong, "signature_mismatch"],
  ] as const) {
    const headers = { [names[0] ?? ""]: first, [names[1] ?? ""]: second };
    expect(verdict(scheme, { headers, body: BODY }, SECRET)).toBe(expected);
  }
});

it("pagerduty accepts one valid signature of several", () => {
  const { headers } = pagerdutyScheme.sign({
    secret: SECRET,
    body: BODY,
    now: NOW,
    deliveryId: "1",
    url: ADDRESS,
  });
  const value = `v1=${"0".repeat(64)},${headers["x-pagerduty-signature"]}`;
  expect(
    verdict(pagerdutyScheme, { headers: { "x-pagerduty-signature": value }, body: BODY }, SECRET),
  ).toBeNull();
});

function shopifyValidate(headers: Record<string, string>, body: Buffer) {
  const shopify = shopifyApi({
    apiKey: "key",
    apiSecretKey: SECRET,
    hostName: "hooks.example.com",
    isEmbeddedApp: false,
    apiVersion: "2025-10" as never,
    logger: { log: () => undefined },
  });
  const request = new IncomingMessage(new Socket());
  const all = {
    ...headers,
    "x-shopify-topic": "orders/create",
    "x-shopify-shop-domain": "shop.myshopify.com",
    "x-shopify-api-version": "2025-10",
    "x-shopify-webhook-id": "1",
  };
  for (const [name, value] of Object.entries(all)) request.headers[name] = value;
  return shopify.webhooks.validate({ rawBody: body.toString(), rawRequest: request });
}
