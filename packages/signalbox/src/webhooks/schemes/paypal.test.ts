/** PayPal's scheme; PayPal has no verifier on npm that works without its service, so deliveries are signed as its documentation says. */
import { generateKeyPairSync, sign } from "node:crypto";
import { crc32 } from "node:zlib";
import { expect, it } from "vitest";
import { paypalScheme, type Scheme } from "./index.ts";
import { BODY, describeScheme, NOW, verdict } from "./scheme-contract.ts";

const WEBHOOK_ID = "1JE4291016473214C";
const CERTIFICATE = "https://api.paypal.com/v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270";
const { publicKey, privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });

const scheme: Scheme = {
  ...paypalScheme,
  verify: (delivery, ...rest) => paypalScheme.verify({ ...delivery, certificate: publicKey }, ...rest),
  sign({ secret, body, now }) {
    const id = "69cd13f0-d67a-11e5-baa3-778b53f4ae55";
    const time = new Date(now).toISOString().replace(".000Z", "Z");
    const signature = sign("sha256", Buffer.from(`${id}|${time}|${secret}|${crc32(body)}`), privateKey);
    return {
      headers: {
        "paypal-transmission-id": id,
        "paypal-transmission-time": time,
        "paypal-transmission-sig": signature.toString("base64"),
        "paypal-auth-algo": "SHA256withRSA",
      },
    };
  },
};

describeScheme({
  title: "paypal",
  scheme,
  secret: WEBHOOK_ID,
  otherSecret: "ANOTHER",
  extraHeaders: { "paypal-cert-url": CERTIFICATE },
});

it("paypal refuses a delivery whose certificate could not be used", () => {
  const { headers } = scheme.sign({ secret: WEBHOOK_ID, body: BODY, now: NOW, deliveryId: "", url: "" });
  expect(verdict(paypalScheme, { headers, body: BODY }, WEBHOOK_ID)).toBe("certificate_refused");
});

it.each([
  ["https://api.paypal.com/v1/notifications/certs/CERT-1", true],
  ["https://api.sandbox.paypal.com/v1/notifications/certs/CERT-1", true],
  ["https://api-m.paypal.com/v1/notifications/certs/CERT-1", true],
  ["http://api.paypal.com/v1/notifications/certs/CERT-1", false],
  ["https://api.paypal.com:8443/v1/notifications/certs/CERT-1", false],
  ["https://api.paypal.com.attacker.example/CERT-1", false],
  ["https://attacker.example/api.paypal.com", false],
  ["https://api.paypal.com@attacker.example/", false],
  ["https://evilpaypal.com/", false],
  ["not an address", false],
])("paypal loads the certificate of %s: %s", (url, isLoaded) => {
  const found = paypalScheme.certificateUrl?.({ headers: { "paypal-cert-url": url }, body: BODY }, []);
  expect(found).toBe(isLoaded ? url : null);
});
