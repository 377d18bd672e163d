/**
 * The parts that schemes share (headers, HMACs, constant-time comparison, signed times), and the schemes that sign the raw body alone and send
 * the digest in one header: GitHub, Shopify, Linear, PagerDuty and the generic scheme.
 */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Scheme } from "./scheme.ts";

export const SIGNED_TIME_WINDOW_SECONDS = 300;

export type Digest = "sha1" | "sha256" | "sha512";

export function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Compares in constant time. The length of a signature is public. */
export function isSameText(a: string, b: string): boolean {
  const left = Buffer.from(a);
  const right = Buffer.from(b);
  return left.length === right.length && timingSafeEqual(left, right);
}

export function hmac(
  algorithm: Digest,
  key: KeyObject,
  prefix: string,
  body: Buffer,
  encoding: "hex" | "base64",
): string {
  const mac = createHmac(algorithm, key);
  if (prefix !== "") mac.update(prefix);
  return mac.update(body).digest(encoding);
}

/** True when one of the keys produces one of the given signatures. */
export function isSignedBy(
  keys: readonly KeyObject[],
  signatures: readonly string[],
  compute: (key: KeyObject) => string,
): boolean {
  for (const key of keys) {
    const expected = compute(key);
    for (const signature of signatures) if (isSameText(expected, signature)) return true;
  }
  return false;
}

/** The bytes of a base64 text; null for a text that is not the one spelling of its bytes. */
export function fromBase64(text: unknown): Buffer | null {
  if (typeof text !== "string" || text === "") return null;
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : null;
}

/** The secret's text, unchanged, as a key. */
export function textKey(secret: string): KeyObject {
  return createSecretKey(Buffer.from(secret));
}

/** Unix seconds, digits only; null for other texts that `Number` would accept, such as `1e9`, ` 12` or `+5`. */
export function parseUnixSeconds(text: string): number | null {
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
}

export function isWithinWindow(timeMs: number, now: number, windowMs: number): boolean {
  return Math.abs(now - timeMs) <= windowMs;
}

export interface BodyHmac {
  readonly name: string;
  /** Lower case; one valid signature in any of them suffices. The service signs with the first. */
  readonly headers: readonly [string, ...string[]];
  readonly algorithm: Digest;
  readonly encoding: "hex" | "base64";
  /** Text before the digest, e.g. `sha256=`. */
  readonly prefix: string;
  /** True when the header may hold several signatures, separated by commas. */
  readonly isList?: boolean;
}

export function createBodyHmacScheme(options: BodyHmac): Scheme {
  const { name, headers, algorithm, encoding, prefix, isList = false } = options;
  return {
    name,
    summary: `${headers[0]}: ${prefix}HMAC-${algorithm.toUpperCase()} of the body, ${encoding}`,
    windowSeconds: null,
    toKey: textKey,
    verify(delivery, keys) {
      // A forwarder may add its own signature to that of the sender.
      const given = headers.flatMap((name) => header(delivery.headers, name) ?? []);
      if (given.length === 0) return "signature_missing";
      const signatures = isList ? given.flatMap((text) => text.split(",").map((part) => part.trim())) : given;
      return isSignedBy(keys, signatures, (key) => prefix + hmac(algorithm, key, "", delivery.body, encoding))
        ? null
        : "signature_mismatch";
    },
    sign: ({ secret, body }) => ({
      headers: { [headers[0]]: prefix + hmac(algorithm, textKey(secret), "", body, encoding) },
    }),
  };
}

export const genericScheme = createBodyHmacScheme({
  name: "generic",
  headers: ["x-signature", "x-hub-signature-256"],
  algorithm: "sha256",
  encoding: "hex",
  prefix: "sha256=",
});

export const githubScheme = createBodyHmacScheme({
  name: "github",
  headers: ["x-hub-signature-256"],
  algorithm: "sha256",
  encoding: "hex",
  prefix: "sha256=",
});

export const shopifyScheme = createBodyHmacScheme({
  name: "shopify",
  headers: ["x-shopify-hmac-sha256", "shopify-hmac-sha256"],
  algorithm: "sha256",
  encoding: "base64",
  prefix: "",
});

/** Linear signs a time inside the body; the source checks it after parsing. */
export const linearScheme = createBodyHmacScheme({
  name: "linear",
  headers: ["linear-signature"],
  algorithm: "sha256",
  encoding: "hex",
  prefix: "",
});

export const pagerdutyScheme = createBodyHmacScheme({
  name: "pagerduty",
  headers: ["x-pagerduty-signature"],
  algorithm: "sha256",
  encoding: "hex",
  prefix: "v1=",
  isList: true,
});
