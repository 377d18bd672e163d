/** Discord: `X-Signature-Ed25519` (hex) over `<X-Signature-Timestamp><body>`; the "secret" is the application's public key. */
import { createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import type { Scheme } from "./scheme.ts";
import { header, isWithinWindow, parseUnixSeconds, SIGNED_TIME_WINDOW_SECONDS } from "./hmac.ts";

/** Prefix of an Ed25519 key in DER (RFC 8410), before the 32 bytes of the key. */
const PUBLIC_KEY_HEAD = Buffer.from("302a300506032b6570032100", "hex");
const PRIVATE_KEY_HEAD = Buffer.from("302e020100300506032b657004220420", "hex");
const KEY_TEXT = /^[0-9a-fA-F]{64}$/;
/** Lower case only, as Discord sends it, so that a signature has one spelling. */
const SIGNATURE_TEXT = /^[0-9a-f]{128}$/;

export const discordScheme: Scheme = {
  name: "discord",
  summary: "x-signature-ed25519: Ed25519 of time and body, hex",
  windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
  onlySigner: "Discord",
  toKey: toPublicKey,
  verify({ headers, body }, keys, now, windowMs) {
    const signature = header(headers, "x-signature-ed25519");
    const time = header(headers, "x-signature-timestamp");
    if (signature === undefined || time === undefined) return "signature_missing";
    const seconds = parseUnixSeconds(time);
    if (seconds === null || !SIGNATURE_TEXT.test(signature)) return "signature_malformed";
    if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
    const signed = Buffer.concat([Buffer.from(time), body]);
    const bytes = Buffer.from(signature, "hex");
    return keys.some((key) => verify(null, signed, key, bytes)) ? null : "signature_mismatch";
  },
  /** The secret is the 32-byte private seed, which only tests and private senders have. */
  sign({ secret, body, now }) {
    const time = String(Math.floor(now / 1000));
    const signature = sign(null, Buffer.concat([Buffer.from(time), body]), toPrivateKey(secret));
    return { headers: { "x-signature-timestamp": time, "x-signature-ed25519": signature.toString("hex") } };
  },
};

function toPublicKey(text: string): KeyObject {
  if (!KEY_TEXT.test(text)) throw new Error("expected Discord's public key: 64 hexadecimal digits");
  return createPublicKey({
    key: Buffer.concat([PUBLIC_KEY_HEAD, Buffer.from(text, "hex")]),
    format: "der",
    type: "spki",
  });
}

function toPrivateKey(text: string): KeyObject {
  if (!KEY_TEXT.test(text)) throw new Error("expected an Ed25519 private seed: 64 hexadecimal digits");
  return createPrivateKey({
    key: Buffer.concat([PRIVATE_KEY_HEAD, Buffer.from(text, "hex")]),
    format: "der",
    type: "pkcs8",
  });
}
