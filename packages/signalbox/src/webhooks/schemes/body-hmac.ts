/** Schemes that sign the raw body alone and put the digest in one header: GitHub, Shopify, Linear, PagerDuty, the generic scheme. */
import type { Scheme } from "./scheme.ts";
import { type Digest, header, hmac, isSignedBy, textKey } from "./signature-text.ts";

export interface BodyHmac {
  readonly name: string;
  /** Lower-case; the first one present counts. */
  readonly headers: readonly [string, ...string[]];
  readonly algorithm: Digest;
  readonly encoding: "hex" | "base64";
  /** Stands before the digest, e.g. `sha256=`. */
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
      const present = headers.find((candidate) => header(delivery.headers, candidate) !== undefined);
      const given = present === undefined ? undefined : header(delivery.headers, present);
      if (given === undefined) return "signature_missing";
      const signatures = isList ? given.split(",").map((part) => part.trim()) : [given];
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

/** The time Linear signs is inside the body, so the source judges it after parsing. */
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
