/** SendGrid's scheme against `@sendgrid/eventwebhook`. */
import { generateKeyPairSync } from "node:crypto";
import { EventWebhook } from "@sendgrid/eventwebhook";
import { expect, it } from "vitest";
import { sendgridScheme } from "./index.ts";
import { describeScheme } from "./scheme-contract.ts";

function createKeys() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "prime256v1" });
  return {
    publicText: publicKey.export({ format: "der", type: "spki" }).toString("base64"),
    privateText: privateKey.export({ format: "der", type: "pkcs8" }).toString("base64"),
  };
}

const keys = createKeys();

describeScheme({
  title: "sendgrid",
  scheme: sendgridScheme,
  secret: keys.publicText,
  otherSecret: createKeys().publicText,
  signingSecret: keys.privateText,
  vendor(headers, body) {
    const vendor = new EventWebhook();
    return vendor.verifySignature(
      vendor.convertPublicKeyToECDSA(keys.publicText),
      body,
      headers["x-twilio-email-event-webhook-signature"] ?? "",
      headers["x-twilio-email-event-webhook-timestamp"] ?? "",
    );
  },
});

it("sendgrid names what it expects of a verification key, and does not repeat the text", () => {
  expect(() => sendgridScheme.toKey("not-a-key")).toThrow(/^expected SendGrid's verification key/);
});
