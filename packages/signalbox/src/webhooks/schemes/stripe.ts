/** Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=…]` over `<t>.<body>`. The key is the text of the secret, including `whsec_`. */
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

export const stripeScheme: Scheme = {
  name: "stripe",
  summary: "stripe-signature: t, v1=HMAC-SHA256 of time and body, hex",
  windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
  toKey: textKey,
  verify({ headers, body }, keys, now, windowMs) {
    const given = header(headers, "stripe-signature");
    if (given === undefined) return "signature_missing";
    const { time, signatures } = parse(given);
    const seconds = time === null ? null : parseUnixSeconds(time);
    if (seconds === null || signatures.length === 0) return "signature_malformed";
    if (!isWithinWindow(seconds * 1000, now, windowMs)) return "timestamp_outside_window";
    return isSignedBy(keys, signatures, (key) => hmac("sha256", key, `${time}.`, body, "hex"))
      ? null
      : "signature_mismatch";
  },
  sign({ secret, body, now }) {
    const time = Math.floor(now / 1000);
    return {
      headers: {
        "stripe-signature": `t=${time},v1=${hmac("sha256", textKey(secret), `${time}.`, body, "hex")}`,
      },
    };
  },
};

/** Ignores unknown versions (`v0` of test mode). A header with two times is ambiguous and refused. */
function parse(text: string): { time: string | null; signatures: string[] } {
  const signatures: string[] = [];
  const times: string[] = [];
  for (const part of text.split(",").map((one) => one.trim())) {
    if (part.startsWith("t=")) times.push(part.slice(2));
    else if (part.startsWith("v1=")) signatures.push(part.slice(3));
  }
  return { time: times.length === 1 ? (times[0] ?? null) : null, signatures };
}
