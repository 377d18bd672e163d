/**
 * A signed JSON Web Token (RFC 7519, compact form) in a header, for senders such as Plaid or Atlassian.
 *
 * 1. The key decides which algorithms are accepted: a text HS…, an RSA key RS… and PS…, an EC key its ES…, an Ed25519 key EdDSA. A token cannot choose
 *    another kind (`none`, or a public key used as the secret of an HMAC).
 * 2. A token has a time: `exp` that has not passed, or `iat` within the window.
 * 3. The body is covered only if the sender puts its SHA-256 into a claim.
 */
import {
  constants,
  createHash,
  createHmac,
  createPrivateKey,
  createPublicKey,
  hash,
  type KeyObject,
  sign,
  timingSafeEqual,
  verify,
} from "node:crypto";
import { isFields } from "../../core/fields.ts";
import { header, isSameText, isWithinWindow, SIGNED_TIME_WINDOW_SECONDS, textKey } from "./hmac.ts";
import type { Scheme, SignatureProblem } from "./scheme.ts";

export interface JwtOptions {
  readonly name: string;
  /** Lower case. */
  readonly header: string;
  /** Before the token: `Bearer ` in `authorization`. */
  readonly prefix: string;
  readonly issuer?: string | undefined;
  readonly audience?: string | undefined;
  /** Claim with the SHA-256 of the body. */
  readonly bodyHash?:
    | { readonly claim: string; readonly encoding: "hex" | "base64" | "base64url" }
    | undefined;
}

type Claims = Readonly<Record<string, unknown>>;

const ES_HASHES: Readonly<Record<string, readonly [string, string]>> = {
  prime256v1: ["ES256", "sha256"],
  secp384r1: ["ES384", "sha384"],
  secp521r1: ["ES512", "sha512"],
};

export function createJwtScheme(options: JwtOptions): Scheme {
  const { name, header: headerName, prefix, bodyHash } = options;
  return {
    name,
    summary: `${headerName}: ${prefix}JSON Web Token${bodyHash === undefined ? "" : ` with the hash of the body in ${bodyHash.claim}`}`,
    windowSeconds: SIGNED_TIME_WINDOW_SECONDS,
    secretHeader: headerName,
    toKey,
    verify({ headers, body }, keys, now, windowMs) {
      const given = header(headers, headerName);
      if (given === undefined) return "signature_missing";
      const parts = given.startsWith(prefix) ? given.slice(prefix.length).split(".") : [];
      const [head = "", payload = "", signature = ""] = parts;
      const { alg, crit } = parseJson(head) ?? {};
      const claims = parseJson(payload);
      const bytes = fromBase64Url(signature);
      // `crit` names extensions that must be understood; none is.
      if (
        parts.length !== 3 ||
        typeof alg !== "string" ||
        crit !== undefined ||
        claims === null ||
        bytes === null
      )
        return "signature_malformed";
      if (!keys.some((key) => isSigned(alg, key, `${head}.${payload}`, bytes))) return "signature_mismatch";
      return checkClaims(claims, options, body, now, windowMs);
    },
    sign({ secret, body, now }) {
      const claims = {
        iat: Math.floor(now / 1000),
        ...(options.issuer === undefined ? {} : { iss: options.issuer }),
        ...(options.audience === undefined ? {} : { aud: options.audience }),
        ...(bodyHash === undefined ? {} : { [bodyHash.claim]: bodyDigest(body, bodyHash.encoding) }),
      };
      return { headers: { [headerName]: prefix + createToken(claims, secret) } };
    },
  };
}

/** The text itself, or the public key of a PEM text, whose line ends may be written as `\n`. */
function toKey(text: string): KeyObject {
  if (!text.startsWith("-----BEGIN")) return textKey(text);
  try {
    const key = createPublicKey(pem(text));
    if (algorithmsOf(key).length > 0) return key;
  } catch {
    // The message of the library may contain parts of the text.
  }
  throw new Error("expected a secret, or an RSA, EC or Ed25519 public key in PEM");
}

function pem(text: string): string {
  return text.replaceAll("\\n", "\n");
}

function algorithmsOf(key: KeyObject): readonly string[] {
  if (key.type === "secret") return ["HS256", "HS384", "HS512"];
  switch (key.asymmetricKeyType) {
    case "rsa":
      return ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"];
    case "ec":
      return [ES_HASHES[key.asymmetricKeyDetails?.namedCurve ?? ""]?.[0] ?? []].flat();
    case "ed25519":
      return ["EdDSA"];
    default:
      return [];
  }
}

function isSigned(algorithm: string, key: KeyObject, text: string, signature: Buffer): boolean {
  if (!algorithmsOf(key).includes(algorithm)) return false;
  const digest = `sha${algorithm.slice(2)}`;
  switch (algorithm.slice(0, 2)) {
    case "HS": {
      const expected = createHmac(digest, key).update(text).digest();
      return expected.length === signature.length && timingSafeEqual(expected, signature);
    }
    case "RS":
      return verify(digest, Buffer.from(text), key, signature);
    case "PS":
      return verify(
        digest,
        Buffer.from(text),
        { key, padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
        signature,
      );
    case "ES":
      return verify(digest, Buffer.from(text), { key, dsaEncoding: "ieee-p1363" }, signature);
    default:
      return verify(null, Buffer.from(text), key, signature);
  }
}

function checkClaims(
  claims: Claims,
  { issuer, audience, bodyHash }: JwtOptions,
  body: Buffer,
  now: number,
  windowMs: number,
): SignatureProblem | null {
  const { iat, exp, nbf, iss, aud } = claims;
  for (const time of [iat, exp, nbf])
    if (time !== undefined && (typeof time !== "number" || !Number.isFinite(time)))
      return "signature_malformed";
  if (iat === undefined && exp === undefined) return "signature_malformed";
  const isAhead = (time: unknown) => typeof time === "number" && time * 1000 > now + windowMs;
  const isLate =
    exp === undefined
      ? !isWithinWindow(Number(iat) * 1000, now, windowMs)
      : Number(exp) * 1000 + windowMs < now;
  if (isAhead(iat) || isAhead(nbf) || isLate) return "timestamp_outside_window";
  if (issuer !== undefined && iss !== issuer) return "signature_mismatch";
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  if (audience !== undefined && !audiences.includes(audience)) return "signature_mismatch";
  if (bodyHash === undefined) return null;
  const stated = claims[bodyHash.claim];
  if (typeof stated !== "string") return "signature_malformed";
  return isSameText(stated, bodyDigest(body, bodyHash.encoding)) ? null : "signature_mismatch";
}

function createToken(claims: Claims, secret: string): string {
  const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const isPem = secret.startsWith("-----BEGIN");
  const key = isPem ? createPrivateKey(pem(secret)) : textKey(secret);
  const alg = algorithmsOf(key)[0] ?? "";
  const text = `${encode({ alg, typ: "JWT" })}.${encode(claims)}`;
  const digest = `sha${alg.slice(2)}`;
  const signature =
    alg === "HS256"
      ? createHmac(digest, key).update(text).digest()
      : alg === "EdDSA"
        ? sign(null, Buffer.from(text), key)
        : sign(digest, Buffer.from(text), { key, dsaEncoding: "ieee-p1363" });
  return `${text}.${signature.toString("base64url")}`;
}

function bodyDigest(body: Buffer, encoding: "hex" | "base64" | "base64url"): string {
  return encoding === "hex" ? hash("sha256", body) : createHash("sha256").update(body).digest(encoding);
}

function fromBase64Url(text: string): Buffer | null {
  const bytes = Buffer.from(text, "base64url");
  return text !== "" && bytes.toString("base64url") === text ? bytes : null;
}

function parseJson(text: string): Claims | null {
  const bytes = fromBase64Url(text);
  if (bytes === null) return null;
  try {
    const value: unknown = JSON.parse(bytes.toString());
    return isFields(value) ? value : null;
  } catch {
    return null;
  }
}
