/**
 * PayPal: `PayPal-Transmission-Sig`, a base64 RSA-SHA256 signature of `<transmission id>|<time>|<webhook id>|<CRC-32 of the body>`, by the key of
 * the certificate that `PayPal-Cert-Url` names; the "secret" is the id of the webhook. The intake loads the certificate, from PayPal's hosts only.
 *
 * A CRC is no hash: who has captured a delivery can make another body with the same one. This is PayPal's scheme, and the reason to use it with
 * HTTPS only.
 */
import { type KeyObject, verify } from "node:crypto";
import { crc32 } from "node:zlib";
import { fromBase64, header, isWithinWindow, textKey } from "./hmac.ts";
import { onlyFrom } from "./certificate-host.ts";
import type { Scheme } from "./scheme.ts";

/** PayPal retries for three days and does not say whether a retry has a new time. Copies are found by the id of the event. */
const WINDOW_SECONDS = 3 * 24 * 60 * 60;
const HOST = /^api(-m)?(\.sandbox)?\.paypal\.com$/;
const WEBHOOK_ID = /^[A-Za-z0-9_-]{1,64}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?Z$/;

export const paypalScheme: Scheme = {
  name: "paypal",
  summary: "paypal-transmission-sig: RSA-SHA256 of ids, time and CRC-32 of the body, base64",
  windowSeconds: WINDOW_SECONDS,
  onlySigner: "PayPal",
  toKey(text) {
    if (!WEBHOOK_ID.test(text)) throw new Error("expected the id of the webhook at PayPal");
    return textKey(text);
  },
  certificateUrl: ({ headers }) => onlyFrom(HOST, header(headers, "paypal-cert-url")),
  verify({ headers, body, certificate }, keys, now, windowMs) {
    const id = header(headers, "paypal-transmission-id");
    const time = header(headers, "paypal-transmission-time");
    const given = header(headers, "paypal-transmission-sig");
    if (id === undefined || time === undefined || given === undefined) return "signature_missing";
    const signature = fromBase64(given);
    // Another algorithm than the one that is used must not be claimed, nor parts be moved between the fields.
    const isForm = TIME.test(time) && !id.includes("|");
    if (signature === null || !isForm || header(headers, "paypal-auth-algo") !== "SHA256withRSA")
      return "signature_malformed";
    if (!isWithinWindow(Date.parse(time), now, windowMs)) return "timestamp_outside_window";
    if (certificate == null) return "certificate_refused";
    return keys.some((key) => isSigned(certificate, `${id}|${time}|${textOf(key)}|${crc32(body)}`, signature))
      ? null
      : "signature_mismatch";
  },
  sign() {
    throw new Error("only PayPal has the key that signs its deliveries");
  },
};

function isSigned(certificate: KeyObject, text: string, signature: Buffer): boolean {
  return verify("sha256", Buffer.from(text), certificate, signature);
}

function textOf(key: KeyObject): string {
  return key.export().toString();
}
