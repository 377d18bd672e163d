/**
 * Twilio: `X-Twilio-Signature`, base64 HMAC-SHA1 with the auth token. A form post signs the public address followed by every field,
 * sorted; any other body is covered by its SHA-256 in the address (`bodySHA256`), and only the address is signed.
 *
 * The signature covers decoded fields, not bytes. Two bodies that decode to the same fields are the same message. A body that does not decode
 * cleanly is refused, because different bodies could decode to the same replacement characters.
 *
 * The signed text has no separator between the address and the fields, so the first fields of a captured form could be moved into the address.
 * Twilio sorts fields, and `AccountSid` is the first: an address that contains this name is refused. If only a part of the name is moved, the
 * form has no `AccountSid`, and the source refuses it.
 */
import { createHmac, hash } from "node:crypto";
import { isUtf8 } from "node:buffer";
import type { Scheme, SignedDelivery } from "./scheme.ts";
import { header, isSameText, isSignedBy, textKey } from "./hmac.ts";

const BODY_HASH = "bodySHA256";
/** The first field of the signed text. */
const FIRST_FIELD = "AccountSid";
const FORM = /^application\/x-www-form-urlencoded\s*(;|$)/i;

export const twilioScheme: Scheme = {
  name: "twilio",
  summary: "x-twilio-signature: HMAC-SHA1 of address and form fields, base64",
  windowSeconds: null,
  toKey: textKey,
  verify(delivery, keys) {
    const signature = header(delivery.headers, "x-twilio-signature");
    if (signature === undefined) return "signature_missing";
    const urls = delivery.urls();
    if (urls.some((url) => url.includes(FIRST_FIELD))) return "signature_malformed";
    const fields = coveredFields(delivery, urls[0] ?? "");
    if (fields === null) return "signature_malformed";
    for (const url of urls) {
      const isSigned = isSignedBy(keys, [signature], (key) =>
        createHmac("sha1", key)
          .update(url + fields)
          .digest("base64"),
      );
      if (isSigned) return null;
    }
    return "signature_mismatch";
  },
  sign({ secret, body, url }) {
    const fields = isJsonLike(body) ? null : formFields(body);
    const query = fields === null ? `${BODY_HASH}=${hash("sha256", body, "hex")}` : undefined;
    const signedUrl = query === undefined ? url : `${url}${url.includes("?") ? "&" : "?"}${query}`;
    const signature = createHmac("sha1", secret)
      .update(signedUrl + (fields ?? ""))
      .digest("base64");
    return { headers: { "x-twilio-signature": signature }, ...(query === undefined ? {} : { query }) };
  },
};

/**
 * The signed text after the address: the fields of a form, or nothing for a body whose hash is in the address. Null when the signature does
 * not cover the body.
 */
function coveredFields(delivery: SignedDelivery, url: string): string | null {
  const bodyHash = URL.parse(url)?.searchParams.get(BODY_HASH);
  if (bodyHash != null) return isSameText(hash("sha256", delivery.body, "hex"), bodyHash) ? "" : null;
  return FORM.test(header(delivery.headers, "content-type") ?? "") ? formFields(delivery.body) : null;
}

/** `name + value` of every field, sorted by name, with distinct values sorted; null when the form does not decode. */
function formFields(body: Buffer): string | null {
  if (!isUtf8(body)) return null;
  const fields = new Map<string, Set<string>>();
  try {
    for (const pair of body.toString().split("&")) {
      if (pair === "") continue;
      const [name = "", ...rest] = pair.split("=");
      const key = decodeFormText(name);
      const values = fields.get(key) ?? new Set();
      fields.set(key, values.add(decodeFormText(rest.join("="))));
    }
  } catch {
    return null;
  }
  return [...fields.keys()]
    .sort()
    .map((name) =>
      [...(fields.get(name) ?? [])]
        .sort()
        .map((value) => name + value)
        .join(""),
    )
    .join("");
}

function decodeFormText(text: string): string {
  return decodeURIComponent(text.replaceAll("+", " "));
}

function isJsonLike(body: Buffer): boolean {
  return body[0] === 0x7b || body[0] === 0x5b;
}
