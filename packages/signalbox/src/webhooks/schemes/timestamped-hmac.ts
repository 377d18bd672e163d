/**
 * The generic scheme with a signed time and delivery id: `X-Signature` is `sha256=` and the lower-case hexadecimal HMAC-SHA256 of
 * `<X-Timestamp>.<X-Event-Id>.<body>`. A captured delivery can be replayed only within the window and only with its own id, which the
 * ledger recognises.
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
    // The time has digits only, so the first dot ends it. The id must have no dot: a part of it could be moved into the body.
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
