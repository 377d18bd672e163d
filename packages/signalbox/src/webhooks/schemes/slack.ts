/** Slack: `X-Slack-Signature: v0=<hex>` over `v0:<X-Slack-Request-Timestamp>:<body>`. */
import type { Scheme } from "./scheme.ts";
import {
  header,
  hmac,
  isSignedBy,
  isWithinWindow,
  parseUnixSeconds,
  SIGNED_TIME_WINDOW_SECONDS,
  textKey,
} from "./hmac.ts";

export const slackScheme: Scheme = {
  name: "slack",
  summary: "x-slack-signature: v0=HMAC-SHA256 of time and body, hex",
  windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
  toKey: textKey,
  verify({ headers, body }, keys, now, windowMs) {
    const signature = header(headers, "x-slack-signature");
    const time = header(headers, "x-slack-request-timestamp");
    if (signature === undefined || time === undefined) return "signature_missing";
    const seconds = parseUnixSeconds(time);
    if (seconds === null) return "signature_malformed";
    if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
    return isSignedBy(keys, [signature], (key) => `v0=${hmac("sha256", key, `v0:${time}:`, body, "hex")}`)
      ? null
      : "signature_mismatch";
  },
  sign({ secret, body, now }) {
    const time = String(Math.floor(now / 1000));
    return {
      headers: {
        "x-slack-request-timestamp": time,
        "x-slack-signature": `v0=${hmac("sha256", textKey(secret), `v0:${time}:`, body, "hex")}`,
      },
    };
  },
};
