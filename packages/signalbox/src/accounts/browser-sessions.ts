/**
 * The dashboard sessions of browsers: reads the session cookie of a request, opens and closes sessions, and checks that the request comes from
 * a page of this server. `sessions.ts` stores the sessions; `session-cookie.ts` defines the cookie and the checks.
 */
import type { HttpRequest } from "../engines/http-server/index.ts";
import type { LoginCode, LoginCodes } from "./login-codes.ts";
import type { Principal, SessionRef } from "./principal.ts";
import { clearCookie, requireOwnHost, requireOwnPage, sessionSecrets, setCookie } from "./session-cookie.ts";
import { type LiveSession, SESSION_LIFETIME_MS, type Sessions } from "./sessions.ts";

export interface BrowserSessionsOptions {
  /** Further host names of the dashboard. */
  readonly allowedHosts: readonly string[];
  /**
   * Returns false for a request to an address without a dashboard. Browsers send a cookie to every port of its host. Default: always true.
   */
  readonly acceptsSessions?: (request: HttpRequest) => boolean;
}

export class BrowserSessions {
  readonly #sessions: Sessions;
  readonly #codes: LoginCodes;
  readonly #options: BrowserSessionsOptions;

  constructor(sessions: Sessions, codes: LoginCodes, options: BrowserSessionsOptions) {
    this.#sessions = sessions;
    this.#codes = codes;
    this.#options = options;
  }

  /** Returns the live session of the request. Throws `forbidden` if a page of another origin sent the request. */
  find(request: HttpRequest): LiveSession | null {
    if (this.#options.acceptsSessions?.(request) === false) return null;
    for (const secret of sessionSecrets(request)) {
      const session = this.#sessions.find(secret);
      if (session === null) continue;
      this.requireOwnPage(request);
      return session;
    }
    return null;
  }

  /** Throws `forbidden` unless the request comes from a page of this server. */
  requireOwnPage(request: HttpRequest): void {
    requireOwnPage(request, this.#options.allowedHosts);
  }

  /** Opens a session and returns the cookie for the response. */
  async open(request: HttpRequest, principal: Principal): Promise<{ cookie: string; expiresAt: number }> {
    const { secret, expiresAt } = await this.#sessions.open(principal);
    return { cookie: setCookie(request, secret, SESSION_LIFETIME_MS), expiresAt };
  }

  /** Opens a session with the code of a login link and returns the cookie; null if the code is unknown, used or expired. */
  async openWithCode(request: HttpRequest, code: string): Promise<string | null> {
    requireOwnHost(request, this.#options.allowedHosts);
    if (!(await this.#codes.take(code))) return null;
    return (await this.open(request, { kind: "root" })).cookie;
  }

  /** Closes the session of the request and returns the cookie that deletes the browser's one. */
  async close(request: HttpRequest): Promise<string> {
    this.requireOwnPage(request);
    for (const secret of sessionSecrets(request)) await this.#sessions.close(secret);
    return clearCookie(request);
  }

  isLive(session: SessionRef): boolean {
    return this.#sessions.isLive(session);
  }

  createLoginCode(): Promise<LoginCode> {
    return this.#codes.create();
  }
}
