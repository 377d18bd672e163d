/** Tokens against `jose`. */
import { createPublicKey, generateKeyPairSync, hash } from "node:crypto";
import { importPKCS8, importSPKI, jwtVerify, SignJWT } from "jose";
import { describe, expect, it } from "vitest";
import { createJwtScheme } from "./index.ts";
import { BODY, describeScheme, NOW, SECRET, verdict } from "./scheme-contract.ts";

const BEARER = { name: "jwt", header: "authorization", prefix: "Bearer " };
const covering = createJwtScheme({
  ...BEARER,
  bodyHash: { claim: "request_body_sha256", encoding: "hex" },
});
const plain = createJwtScheme({ ...BEARER, issuer: "sender", audience: "us" });
const seconds = NOW / 1000;
const TEXT_KEY = Buffer.from(SECRET);

function createPair(kind: "RS256" | "ES256" | "ES384" | "EdDSA") {
  const { publicKey, privateKey } =
    kind === "RS256"
      ? generateKeyPairSync("rsa", { modulusLength: 2048 })
      : kind === "EdDSA"
        ? generateKeyPairSync("ed25519")
        : generateKeyPairSync("ec", { namedCurve: kind === "ES256" ? "prime256v1" : "secp384r1" });
  return {
    publicKey: publicKey.export({ format: "pem", type: "spki" }).toString(),
    privateKey: privateKey.export({ format: "pem", type: "pkcs8" }).toString(),
  };
}

const token = (headers: Record<string, string>) => headers["authorization"]?.slice("Bearer ".length) ?? "";
const at = { currentDate: new Date(NOW) };

describeScheme({
  title: "jwt with a secret and the hash of the body",
  scheme: covering,
  secret: SECRET,
  vendor: (headers) => jwtVerify(token(headers), TEXT_KEY, at),
});

describe.each(["RS256", "ES256", "ES384", "EdDSA"] as const)("jwt with a key for %s", (algorithm) => {
  const keys = createPair(algorithm);

  it("is accepted if jose signed it, and jose accepts what the scheme signs", async () => {
    const jwt = await new SignJWT({ request_body_sha256: hash("sha256", BODY) })
      .setProtectedHeader({ alg: algorithm })
      .setIssuedAt(seconds)
      .sign(await importPKCS8(keys.privateKey, algorithm));
    const headers = { authorization: `Bearer ${jwt}` };
    expect(verdict(covering, { headers, body: BODY }, keys.publicKey)).toBeNull();
    // In files with variables, line ends are written.
    expect(
      verdict(covering, { headers, body: BODY }, keys.publicKey.trim().replaceAll("\n", "\\n")),
    ).toBeNull();
    const own = covering.sign({ secret: keys.privateKey, body: BODY, now: NOW, deliveryId: "", url: "" });
    await jwtVerify(token(own.headers), await importSPKI(keys.publicKey, algorithm), at);
  });

  it("is refused if the public key was used as the secret of an HMAC, or with no signature at all", async () => {
    const claims = { request_body_sha256: hash("sha256", BODY), iat: seconds };
    const der = createPublicKey(keys.publicKey).export({ format: "der", type: "spki" });
    for (const secret of [Buffer.from(keys.publicKey), Buffer.from(keys.publicKey.trim()), der]) {
      const jwt = await new SignJWT(claims).setProtectedHeader({ alg: "HS256" }).sign(secret);
      const headers = { authorization: `Bearer ${jwt}` };
      expect(verdict(covering, { headers, body: BODY }, keys.publicKey)).toBe("signature_mismatch");
    }
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    for (const end of ["", "x", "AA"]) {
      const headers = { authorization: `Bearer ${encode({ alg: "none" })}.${encode(claims)}.${end}` };
      expect(verdict(covering, { headers, body: BODY }, keys.publicKey)).not.toBeNull();
    }
  });
});

describe("the claims of a token", () => {
  const check = async (claims: Record<string, unknown>, now = NOW) => {
    const jwt = await new SignJWT(claims).setProtectedHeader({ alg: "HS512" }).sign(TEXT_KEY);
    return verdict(plain, { headers: { authorization: `Bearer ${jwt}` }, body: BODY, now }, SECRET);
  };
  const named = { iss: "sender", aud: "us" };

  it("must have the issuer and the audience, which may be one of several", async () => {
    expect(await check({ ...named, iat: seconds })).toBeNull();
    expect(await check({ iss: "sender", aud: ["them", "us"], iat: seconds })).toBeNull();
    expect(await check({ iss: "other", aud: "us", iat: seconds })).toBe("signature_mismatch");
    expect(await check({ iss: "sender", aud: "them", iat: seconds })).toBe("signature_mismatch");
    expect(await check({ iat: seconds })).toBe("signature_mismatch");
  });

  it("must have a time: one that has not passed, or one of issue within the window", async () => {
    expect(await check(named)).toBe("signature_malformed");
    expect(await check({ ...named, exp: seconds + 3600, iat: seconds - 3600 })).toBeNull();
    expect(await check({ ...named, exp: seconds - 301 })).toBe("timestamp_outside_window");
    expect(await check({ ...named, exp: seconds + 9, iat: seconds + 301 })).toBe("timestamp_outside_window");
    expect(await check({ ...named, iat: seconds, nbf: seconds + 301 })).toBe("timestamp_outside_window");
    expect(await check({ ...named, iat: seconds - 301 })).toBe("timestamp_outside_window");
    expect(await check({ ...named, iat: "now" })).toBe("signature_malformed");
  });
});
