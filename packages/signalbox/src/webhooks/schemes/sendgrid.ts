/**
 * SendGrid's event webhook: `X-Twilio-Email-Event-Webhook-Signature`, a base64 ECDSA signature (P-256, SHA-256, DER) of `<time><body>`; the "secret" is
 * the verification key, a public key.
 *
 * ECDSA is random, so a signature cannot be computed again and compared: its base64 must be the only spelling of its bytes instead.
 */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { fromBase64, header, isWithinWindow, parseUnixSeconds } from "./hmac.ts";
import type { Scheme } from "./scheme.ts";

const SIGNATURE = "x-twilio-email-event-webhook-signature";
const TIME = "x-twilio-email-event-webhook-timestamp";
/** SendGrid tries for 24 hours and does not say whether a retry is signed anew. Copies are found by the ids of the signed events. */
const WINDOW_SECONDS = 24 * 60 * 60;

export const sendgridScheme: Scheme = {
  name: "sendgrid",
  summary: `${SIGNATURE}: ECDSA of time and body, base64`,
  windowSeconds: WINDOW_SECONDS,
  onlySigner: "SendGrid",
  toKey: toPublicKey,
  verify({ headers, body }, keys, now, windowMs) {
    const given = header(headers, SIGNATURE);
    const time = header(headers, TIME);
    if (given === undefined || time === undefined) return "signature_missing";
    const seconds = parseUnixSeconds(time);
    const signature = fromBase64(given);
    if (seconds === null || signature === null) return "signature_malformed";
    if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
    const signed = Buffer.concat([Buffer.from(time), body]);
    return keys.some((key) => verify("sha256", signed, key, signature)) ? null : "signature_mismatch";
  },
  /** The secret is the private key in the same form, which only tests and private senders have. */
  sign({ secret, body, now }) {
    const time = String(Math.floor(now / 1000));
    const key = createPrivateKey({ key: Buffer.from(secret, "base64"), format: "der", type: "pkcs8" });
    const signature = sign("sha256", Buffer.concat([Buffer.from(time), body]), key);
    return { headers: { [TIME]: time, [SIGNATURE]: signature.toString("base64") } };
  },
};

function toPublicKey(text: string): KeyObject {
  try {
    const key = createPublicKey({ key: Buffer.from(text, "base64"), format: "der", type: "spki" });
    if (key.asymmetricKeyDetails?.namedCurve === "prime256v1") return key;
  } catch {
    // The message of the library may contain parts of the text.
  }
  throw new Error("expected SendGrid's verification key: a P-256 public key in base64");
}
