/**
 * Standard Webhooks and Svix: id, time and a space-separated list of `v1,<base64>` signatures over `<id>.<time>.<body>`, in three headers
 * whose names differ in the prefix.
 */
import { createSecretKey, type KeyObject } from "node:crypto";
import { standardKey } from "../../outgoing/index.ts";
import type { Scheme, SignatureProblem, SignedDelivery } from "./scheme.ts";
import {
  header,
  hmac,
  isSignedBy,
  isWithinWindow,
  parseUnixSeconds,
  SIGNED_TIME_WINDOW_SECONDS,
} from "./hmac.ts";

const VERSION = "v1,";

export const standardScheme = createStandardScheme("standard", ["webhook"]);
/** Svix sends its own header names, or the standard ones for senders without its branding. */
export const svixScheme = createStandardScheme("svix", ["svix", "webhook"]);

function createStandardScheme(name: string, prefixes: readonly [string, ...string[]]): Scheme {
  return {
    name,
    summary: `${prefixes[0]}-signature: v1,HMAC-SHA256 of id, time and body, base64`,
    windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
    toKey: toStandardKey,
    verify(delivery, keys, now, windowMs) {
      const prefix = prefixes.find((one) => header(delivery.headers, `${one}-signature`) !== undefined);
      return prefix === undefined
        ? "signature_missing"
        : verifyStandard(delivery, prefix, keys, now, windowMs);
    },
    sign: ({ secret, body, now, deliveryId }) => {
      const [prefix] = prefixes;
      const time = String(Math.floor(now / 1000));
      const signature = hmac("sha256", toStandardKey(secret), `${deliveryId}.${time}.`, body, "base64");
      return {
        headers: {
          [`${prefix}-id`]: deliveryId,
          [`${prefix}-timestamp`]: time,
          [`${prefix}-signature`]: VERSION + signature,
        },
      };
    },
  };
}

export function toStandardKey(secret: string): KeyObject {
  return createSecretKey(standardKey(secret));
}

export function verifyStandard(
  { headers, body }: SignedDelivery,
  prefix: string,
  keys: readonly KeyObject[],
  now: number,
  windowMs: number,
): SignatureProblem | null {
  const id = header(headers, `${prefix}-id`);
  const time = header(headers, `${prefix}-timestamp`);
  const given = header(headers, `${prefix}-signature`);
  if (id === undefined || time === undefined || given === undefined) return "signature_missing";
  const seconds = parseUnixSeconds(time);
  // The list may contain other versions, such as `v1a` (asymmetric).
  const signatures = given.split(" ").filter((part) => part.startsWith(VERSION));
  if (seconds === null || signatures.length === 0) return "signature_malformed";
  if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
  return isSignedBy(
    keys,
    signatures,
    (key) => VERSION + hmac("sha256", key, `${id}.${time}.`, body, "base64"),
  )
    ? null
    : "signature_mismatch";
}
