/** Stripe's scheme against the `stripe` package. */
import Stripe from "stripe";
import { expect, it } from "vitest";
import { stripeScheme } from "./index.ts";
import { ADDRESS, BODY, describeScheme, NOW, SECRET, verdict } from "./scheme-contract.ts";

const stripe = new Stripe("sk_test_1");
const verdictOn = (header: string, secret: string) =>
  verdict(stripeScheme, { headers: { "stripe-signature": header }, body: BODY }, secret);

describeScheme({
  title: "stripe",
  scheme: stripeScheme,
  secret: "whsec_test_secret",
  ignoresSpaces: true,
  vendor: (headers, body) =>
    stripe.webhooks.constructEvent(
      body,
      headers["stripe-signature"] ?? "",
      "whsec_test_secret",
      300,
      undefined,
      NOW,
    ),
});

it("stripe accepts generateTestHeaderString, also beside the signature of a rotated secret", () => {
  const make = (secret: string) =>
    stripe.webhooks.generateTestHeaderString({ payload: BODY.toString(), secret, timestamp: NOW / 1000 });
  expect(verdictOn(make("whsec_a"), "whsec_a")).toBeNull();
  const both = `${make("whsec_b")},${make("whsec_a").split(",")[1]},v0=00`;
  expect(verdictOn(both, "whsec_a")).toBeNull();
});

it("stripe refuses a header with two times", () => {
  const { headers } = stripeScheme.sign({
    secret: SECRET,
    body: BODY,
    now: NOW,
    deliveryId: "1",
    url: ADDRESS,
  });
  expect(verdictOn(`t=${NOW / 1000 - 1},${headers["stripe-signature"]}`, SECRET)).toBe("signature_malformed");
});
