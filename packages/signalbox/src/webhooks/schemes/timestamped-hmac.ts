/**
 * The generic scheme with a time and the delivery id under the signature: `X-Signature` is `sha256=` and the lower-case hexadecimal
 * HMAC-SHA256 of `<X-Timestamp>.<X-Event-Id>.<body>`. A captured delivery can be sent again within the window only, and only under its own
 * id, which the ledger knows.
 */
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

const SIGNATURE = "x-signature";
const TIME = "x-timestamp";
const ID = "x-event-id";
const PREFIX = "sha256=";

export const timestampedScheme: Scheme = {
  name: "generic, timestamped",
  summary: `${SIGNATURE}: ${PREFIX}HMAC-SHA256 of ${TIME}, ${ID} and the body, hex`,
  windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
  toKey: textKey,
  verify({ headers, body }, keys, now, windowMs) {
    const given = header(headers, SIGNATURE);
    const time = header(headers, TIME);
    const id = header(headers, ID);
    if (given === undefined || time === undefined || id === undefined) return "signature_missing";
    const seconds = parseUnixSeconds(time);
    // The time holds digits only, so the first dot ends it; the id must have none, or it could give a part of itself to the body.
    if (seconds === null || id.includes(".")) return "signature_malformed";
    if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
    return isSignedBy(keys, [given], (key) => PREFIX + hmac("sha256", key, `${time}.${id}.`, body, "hex"))
      ? null
      : "signature_mismatch";
  },
  sign({ secret, body, now, deliveryId }) {
    const time = String(Math.floor(now / 1000));
    const id = deliveryId.replaceAll(".", "-");
    return {
      headers: {
        [TIME]: time,
        [ID]: id,
        [SIGNATURE]: PREFIX + hmac("sha256", textKey(secret), `${time}.${id}.`, body, "hex"),
      },
    };
  },
};
