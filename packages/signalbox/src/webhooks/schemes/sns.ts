/**
 * Amazon SNS: the message is JSON with a base64 RSA signature (version 1: SHA-1, version 2: SHA-256) of some of its members, by the key of the
 * certificate that `SigningCertURL` names. Anybody can create a topic whose messages have valid signatures, so the "secret" is the ARN of the topic that is
 * accepted. The intake loads the certificate, from SNS in the region of the topic only.
 *
 * Members that are not signed (`UnsubscribeURL`, `MessageAttributes`) are not used. The signed text separates members by line ends: all but the message have
 * none, so that a text has one reading.
 */
import { isUtf8 } from "node:buffer";
import { type KeyObject, verify } from "node:crypto";
import { isFields } from "../../core/fields.ts";
import { fromBase64, isSameText, isWithinWindow, textKey } from "./hmac.ts";
import { onlyFrom } from "./certificate-host.ts";
import type { Scheme } from "./scheme.ts";

/** A message has the time when it was published, and SNS retries for at most an hour. */
const WINDOW_SECONDS = 60 * 60;
const ARN = /^arn:aws[a-z-]*:sns:([a-z0-9-]+):\d{12}:[A-Za-z0-9_.-]{1,256}$/;
const CERTIFICATE_PATH = /^\/SimpleNotificationService-[A-Za-z0-9]+\.pem$/;
const NOTIFICATION = ["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"];
const CONFIRMATION = ["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"];
const SIGNED: Readonly<Record<string, readonly string[]>> = {
  Notification: NOTIFICATION,
  SubscriptionConfirmation: CONFIRMATION,
  UnsubscribeConfirmation: CONFIRMATION,
};
const ALGORITHMS: Readonly<Record<string, string>> = { 1: "sha1", 2: "sha256" };

export const snsScheme: Scheme = {
  name: "sns",
  summary: "Signature of the body: RSA of its members, base64; the secret is the ARN of the topic",
  windowSeconds: WINDOW_SECONDS,
  onlySigner: "SNS",
  toKey(text) {
    if (!ARN.test(text)) throw new Error("expected the ARN of an SNS topic");
    return textKey(text);
  },
  certificateUrl({ body }, keys) {
    const message = parse(body);
    if (message === null || !isTopic(keys, message["TopicArn"])) return null;
    const url = snsUrl(message["TopicArn"], message["SigningCertURL"]);
    return url !== null && CERTIFICATE_PATH.test(new URL(url).pathname) ? url : null;
  },
  verify({ body, certificate }, keys, now, windowMs) {
    const message = parse(body);
    if (message === null || message["Signature"] === undefined) return "signature_missing";
    const text = signedText(message);
    const signature = fromBase64(message["Signature"]);
    const algorithm = ALGORITHMS[String(message["SignatureVersion"])];
    if (text === null || signature === null || algorithm === undefined) return "signature_malformed";
    if (!isWithinWindow(Date.parse(String(message["Timestamp"])), now, windowMs))
      return "timestamp_outside_window";
    if (!isTopic(keys, message["TopicArn"])) return "signature_mismatch";
    if (certificate == null) return "certificate_refused";
    return verify(algorithm, Buffer.from(text), certificate, signature) ? null : "signature_mismatch";
  },
  sign() {
    throw new Error("only SNS has the key that signs its messages");
  },
};

/** The address, if it is one of SNS in the region of the topic. */
export function snsUrl(topic: unknown, text: unknown): string | null {
  const region = typeof topic === "string" ? ARN.exec(topic)?.[1] : undefined;
  if (region === undefined) return null;
  return onlyFrom(new RegExp(`^sns\\.${region}\\.amazonaws\\.com(\\.cn)?$`), text);
}

function parse(body: Buffer): Record<string, unknown> | null {
  if (!isUtf8(body)) return null;
  try {
    const message: unknown = JSON.parse(body.toString());
    return isFields(message) ? message : null;
  } catch {
    return null;
  }
}

/** Null unless all members that a message of this type has are texts. */
function signedText(message: Readonly<Record<string, unknown>>): string | null {
  const type = message["Type"];
  const names = typeof type === "string" && Object.hasOwn(SIGNED, type) ? SIGNED[type] : undefined;
  if (names === undefined) return null;
  let text = "";
  for (const name of names) {
    const value = Object.hasOwn(message, name) ? message[name] : undefined;
    if (name === "Subject" && value == null) continue;
    if (typeof value !== "string" || (name !== "Message" && value.includes("\n"))) return null;
    text += `${name}\n${value}\n`;
  }
  return text;
}

function isTopic(keys: readonly KeyObject[], topic: unknown): boolean {
  return typeof topic === "string" && keys.some((key) => isSameText(key.export().toString(), topic));
}
