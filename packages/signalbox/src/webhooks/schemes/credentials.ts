/**
 * Senders that do not sign: they send the secret itself, as a user name with password or as a key, or are known by their addresses only. Nothing of the
 * body is covered; use such schemes with HTTPS and, if the sender has fixed addresses, with `addresses`.
 */
import { type KeyObject, timingSafeEqual } from "node:crypto";
import { sha256 } from "../../core/secret.ts";
import { header, textKey } from "./hmac.ts";
import type { Scheme } from "./scheme.ts";

const BASIC = "Basic ";

/** The secret is `user:password`. */
export function createBasicScheme(name: string): Scheme {
  return {
    name,
    summary: "authorization: Basic, user name and password",
    windowSeconds: null,
    secretHeader: "authorization",
    toKey(text) {
      if (!/^[^:]+:.+$/s.test(text)) throw new Error("expected user:password");
      return textKey(text);
    },
    verify({ headers }, keys) {
      const given = header(headers, "authorization");
      if (given === undefined) return "signature_missing";
      if (!given.startsWith(BASIC)) return "signature_malformed";
      return keys.some((key) => isSame(encode(textOf(key)), given)) ? null : "signature_mismatch";
    },
    sign: ({ secret }) => ({ headers: { authorization: encode(secret) } }),
  };
}

/** Where the key is: a header, perhaps with a text before it, or a parameter of the address. */
export type KeyPlace = { readonly header: string; readonly prefix: string } | { readonly parameter: string };

export function createApiKeyScheme(name: string, place: KeyPlace): Scheme {
  if ("parameter" in place) {
    const { parameter } = place;
    return {
      name,
      summary: `the parameter ${parameter} of the address: the secret itself`,
      windowSeconds: null,
      secretParameter: parameter,
      toKey: textKey,
      verify({ urls }, keys) {
        const [given, ...others] = URL.parse(urls()[0] ?? "")?.searchParams.getAll(parameter) ?? [];
        if (given === undefined || given === "") return "signature_missing";
        if (others.length > 0) return "signature_malformed";
        return keys.some((key) => isSame(textOf(key), given)) ? null : "signature_mismatch";
      },
      sign: ({ secret }) => ({
        headers: {},
        query: new URLSearchParams({ [parameter]: secret }).toString(),
      }),
    };
  }
  const { header: headerName, prefix } = place;
  return {
    name,
    summary: `${headerName}: ${prefix}the secret itself`,
    windowSeconds: null,
    secretHeader: headerName,
    toKey: textKey,
    verify({ headers }, keys) {
      const given = header(headers, headerName);
      if (given === undefined) return "signature_missing";
      return keys.some((key) => isSame(prefix + textOf(key), given)) ? null : "signature_mismatch";
    },
    sign: ({ secret }) => ({ headers: { [headerName]: prefix + secret } }),
  };
}

/** The list of addresses of the source, which is checked before every scheme, is the only proof. */
export function createAddressScheme(name: string): Scheme {
  return {
    name,
    summary: "the address of the sender",
    windowSeconds: null,
    needsNoSecret: true,
    toKey: textKey,
    verify: () => null,
    sign: () => ({ headers: {} }),
  };
}

/** Hashes are compared because `timingSafeEqual` needs equal lengths, and the length of a secret is secret. */
function isSame(expected: string, given: string): boolean {
  return timingSafeEqual(sha256(expected), sha256(given));
}

function encode(userAndPassword: string): string {
  return BASIC + Buffer.from(userAndPassword).toString("base64");
}

function textOf(key: KeyObject): string {
  return key.export().toString();
}
