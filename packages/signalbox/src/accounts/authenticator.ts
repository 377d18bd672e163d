/**
 * Turns the credential of a request into a principal: the root token, a live token of an account, or a dashboard session that stands
 * for one of them. Every door that takes a credential asks here.
 */
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { Secret } from "../core/secret.ts";
import type { WatchedCredential } from "./credential-ends.ts";
import { type Principal, ROOT } from "./principal.ts";
import { requireOwnPage, sessionSecrets } from "./session-cookie.ts";
import { type LiveSession, sessionKey, type Sessions } from "./sessions.ts";
import { tokenKey, type Tokens } from "./tokens.ts";

export interface AuthenticatorParts {
  readonly rootToken: Secret;
  readonly tokens: Tokens;
  readonly sessions: Sessions;
  /** Host names, beside the server's own, that the dashboard is reached by. */
  readonly allowedHosts: readonly string[];
  /** False for requests to an address that serves no dashboard: a cookie knows no port and is sent there, too. Default: always. */
  readonly acceptsSessions?: (request: HttpRequest) => boolean;
}

export class Authenticator {
  readonly #parts: AuthenticatorParts;

  constructor(parts: AuthenticatorParts) {
    this.#parts = parts;
  }

  /**
   * From the `Authorization` header, else from the dashboard's session; null when there is none or it is unknown. A header decides
   * alone, so that a page cannot mix the two. Throws `forbidden` when a live session is used by a page that is not ours.
   */
  fromRequest(request: HttpRequest): Principal | null {
    const { authorization } = request.headers;
    if (authorization !== undefined) return this.fromHeader(authorization);
    return this.findSession(request)?.principal ?? null;
  }

  /** From an `Authorization` header; null when it is missing, malformed or unknown. */
  fromHeader(header: string | undefined): Principal | null {
    const text = bearerText(header);
    return text === null ? null : this.fromText(text);
  }

  /** `connection` is what the text came over, where callers send the same one again and again. */
  fromText(text: string, connection: object | null = null): Principal | null {
    const token = this.#parts.tokens.authenticate(text, connection);
    if (token !== undefined) return { kind: "token", token };
    return this.#parts.rootToken.equals(text) ? ROOT : null;
  }

  /** Whether the text is the root token itself, for doors that must not let it out. */
  isRootToken(text: string): boolean {
    return this.#parts.rootToken.equals(text);
  }

  /** The request's live dashboard session; throws `forbidden` when a page that is not ours sends it. */
  findSession(request: HttpRequest): LiveSession | null {
    if (this.#parts.acceptsSessions?.(request) === false) return null;
    for (const secret of sessionSecrets(request)) {
      const session = this.#parts.sessions.find(secret);
      if (session === null) continue;
      requireOwnPage(request, this.#parts.allowedHosts);
      return session;
    }
    return null;
  }

  /**
   * Calls `onEnd` once when the principal's token or session is revoked, logged out or expires, at once if it has ended already; the result
   * stops that. The root token has no end while the process lives.
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
    }
    if (isLive) return tokens.ends.watch(credentials, onEnd);
    onEnd();
    return () => undefined;
  }
}

/** The credential of a `Bearer` header; the scheme's name is case-insensitive (RFC 9110, section 11.1). */
export function bearerText(header: string | undefined): string | null {
  if (header === undefined || header.length < 8 || header.slice(0, 7).toLowerCase() !== "bearer ")
    return null;
  const text = header.slice(7).trim();
  return text === "" ? null : text;
}
