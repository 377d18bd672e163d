/** Turns the credential of a request into a principal: the root token, or a live token of an account. */
import type { Secret } from "../core/secret.ts";
import { type Principal, ROOT } from "./principal.ts";
import type { Tokens } from "./tokens.ts";

export class Authenticator {
  readonly #rootToken: Secret;
  readonly #tokens: Tokens;

  constructor(rootToken: Secret, tokens: Tokens) {
    this.#rootToken = rootToken;
    this.#tokens = tokens;
  }

  /** From an `Authorization` header; null when it is missing, malformed or unknown. */
  fromHeader(header: string | undefined): Principal | null {
    const text = bearerText(header);
    return text === null ? null : this.fromText(text);
  }

  fromText(text: string): Principal | null {
    const token = this.#tokens.authenticate(text);
    if (token !== undefined) return { kind: "token", token };
    return this.#rootToken.equals(text) ? ROOT : null;
  }
}

/** The credential of a `Bearer` header; the scheme's name is case-insensitive (RFC 9110, section 11.1). */
export function bearerText(header: string | undefined): string | null {
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ")
    return null;
  const text = header.slice(7).trim();
  return text === "" ? null : text;
}
