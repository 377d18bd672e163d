/** Parts that schemes share: reading headers, comparing signatures, judging times. */
import { createHmac, createSecretKey, type KeyObject, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export const SIGNED_TIME_WINDOW_SECONDS = 300;

export type Digest = "sha1" | "sha256" | "sha512";

export function header(headers: IncomingHttpHeaders, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "string" && value !== "" ? value : undefined;
}

/** Equality of two texts whose time tells nothing about where they differ; lengths of signatures are public. */
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

/** True when one of the keys makes one of the given signatures. */
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

/** A key from the secret's text as it stands. */
export function textKey(secret: string): KeyObject {
  return createSecretKey(Buffer.from(secret));
}

/** Unix seconds as digits only; null for anything else, so that `1e9`, ` 12` or `+5` never count as a time. */
export function parseUnixSeconds(text: string): number | null {
  return /^\d{1,12}$/.test(text) ? Number(text) : null;
}

export function isWithinWindow(timeMs: number, now: number, windowMs: number): boolean {
  return Math.abs(now - timeMs) <= windowMs;
}
