/** Authenticates requests. The credential is the root token, a live token of an account, or a dashboard session of one of them. */
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Secret } from "../core/secret.ts";
import type { BrowserSessions } from "./browser-sessions.ts";
import type { WatchedCredential } from "./credential-ends.ts";
import { type Principal, ROOT } from "./principal.ts";
import { sessionKey } from "./sessions.ts";
import { tokenKey, type Tokens } from "./tokens.ts";

export interface AuthenticatorParts {
  readonly rootToken: Secret;
  readonly tokens: Tokens;
  readonly sessions: BrowserSessions;
  /** See `whenFresh`. Default: tokens and sessions in memory are always up to date. */
  readonly whenFresh?: () => Promise<void> | null;
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /**
   * Returns the principal of the `Authorization` header or, without that header, of the dashboard session; null if the credential is missing
   * or unknown. Throws `forbidden` if a page of another origin uses a live session.
   */
  fromRequest(request: HttpRequest): Principal | null {
    const { authorization } = request.headers;
    if (authorization !== undefined) return this.fromHeader(authorization);
    return this.#parts.sessions.find(request)?.principal ?? null;
  }

  /**
   * For messages on connections that were authenticated earlier: null if they may be handled at once. Otherwise tokens in memory may be out of
   * date, and connections of revoked ones are closed before the promise resolves.
   */
  whenFresh(): Promise<void> | null {
    return this.#parts.whenFresh?.() ?? null;
  }

  /** Returns the principal of an `Authorization` header; null if the header is missing, malformed or unknown. */
  fromHeader(header: string | undefined): Principal | null {
    const text = bearerText(header);
    return text === null ? null : this.fromText(text);
  }

  /** `connection` is the connection that the text was received on, for callers that repeat their token. */
  fromText(text: string, connection: object | null = null): Principal | null {
    const { index, clock } = this.#parts.tokens;
    const token = index.findByText(text, clock.now(), connection);
    if (token !== undefined) return { kind: "token", token };
    return this.#parts.rootToken.equals(text) ? ROOT : null;
  }

  /** Returns true for the root token, which must never be forwarded. */
  isRootToken(text: string): boolean {
    return this.#parts.rootToken.equals(text);
  }

  /**
   * Calls `onEnd` once, when the token or session of the principal is revoked, logged out, rotated or expires; immediately if it has already ended.
   * The returned function stops watching. The root token does not end while the process runs.
   */
  watch(principal: Principal, onEnd: () => void): () => void {
    const { tokens, sessions } = this.#parts;
    const credentials: WatchedCredential[] = [];
    const { session } = principal;
    let isLive = true;
    if (session !== undefined) {
      isLive = sessions.isLive(session);
      credentials.push({ key: sessionKey(session.hash), expiresAt: session.expiresAt });
    }
    if (principal.kind === "token") {
      const { token } = principal;
      isLive &&= tokens.isLive(token);
      credentials.push({ key: tokenKey(token.id), expiresAt: token.expiresAt });
      if (session === undefined) {
        const secret = tokens.secretOf(token);
        if (secret === null) isLive = false;
        else credentials.push(secret);
      }
    }
    if (isLive) return tokens.ends.watch(credentials, onEnd);
    onEnd();
    return () => undefined;
  }
}

/** Returns the credential of a `Bearer` header. The name of the scheme is case-insensitive (RFC 9110, section 11.1). */
export function bearerText(header: string | undefined): string | null {
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ")
    return null;
  const text = header.slice(7).trim();
  return text === "" ? null : text;
}
