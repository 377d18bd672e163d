/**
 * GitLab has two schemes: a secret token, sent in clear as `X-Gitlab-Token`, and a signing token (`whsec_…`) that signs like Standard Webhooks.
 * The form of a secret decides how it is used, so a signing token that is sent as a plain token is refused.
 */
import { type KeyObject, timingSafeEqual } from "node:crypto";
import { sha256 } from "../../core/secret.ts";
import type { Scheme } from "./scheme.ts";
import { header, SIGNED_TIME_WINDOW_SECONDS, textKey } from "./hmac.ts";
import { standardScheme, toStandardKey, verifyStandard } from "./standard-webhooks.ts";

const SIGNING_PREFIX = "whsec_";

export const gitlabScheme: Scheme = {
  name: "gitlab",
  summary: "x-gitlab-token: the secret itself; or webhook-signature as Standard Webhooks",
  windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
  toKey: textKey,
  verify(delivery, keys, now, windowMs) {
    if (header(delivery.headers, "webhook-signature") !== undefined) {
      const signing = keys.flatMap((key) => {
        const text = key.export().toString();
        return text.startsWith(SIGNING_PREFIX) ? [toStandardKey(text)] : [];
      });
      return signing.length === 0 ? "no_secret" : verifyStandard(delivery, "webhook", signing, now, windowMs);
    }
    const given = header(delivery.headers, "x-gitlab-token");
    if (given === undefined) return "signature_missing";
    return keys.some((key) => isPlainToken(key, given)) ? null : "signature_mismatch";
  },
  sign: (material) =>
    material.secret.startsWith(SIGNING_PREFIX)
      ? standardScheme.sign(material)
      : { headers: { "x-gitlab-token": material.secret } },
};

/** Hashes are compared because `timingSafeEqual` needs equal lengths, and the length of a token is secret. */
function isPlainToken(key: KeyObject, given: string): boolean {
  const token = key.export().toString();
  return !token.startsWith(SIGNING_PREFIX) && timingSafeEqual(sha256(token), sha256(given));
}
