/**
 * Logging in and out, and what the page asks first: who am I, and which commands do I start with.
 *
 *   GET    /dashboard/login?code=…   exchanges a login link's code for a session and redirects, so that the code leaves the address bar
 *   GET    /dashboard/session        who the browser is; `result` is null without a session (not an error: the page asks at each start)
 *   POST   /dashboard/session        `{token}`: opens a session for a pasted token
 *   DELETE /dashboard/session        ends the session
 *   GET    /dashboard/first-commands the commands of the overview, as the terminal printed them
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { PERMISSIONS, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import {
  type Accounts,
  type Authenticator,
  boundGateway,
  clearCookie,
  type FailureThrottle,
  type Principal,
  requireOwnHost,
  requireOwnPage,
  SESSION_LIFETIME_MS,
  sessionSecrets,
  type Sessions,
  setCookie,
} from "../accounts/index.ts";
import type { FirstCommand, OverviewCard } from "../area-module.ts";
import type { RequestContext } from "../http/request-context.ts";

export interface SessionDoorParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly accounts: Accounts;
  readonly allowedHosts: readonly string[];
  /** Counts wrong tokens and codes. */
  readonly failures: Pick<FailureThrottle, "record">;
  /** Where traffic goes when that is not the dashboard's own address. */
  readonly trafficUrl: () => string | null;
  readonly version: string;
  /** `tokenExpression` is shell text that expands to the token. */
  readonly firstCommands: (
    request: HttpRequest,
    tokenExpression: string,
  ) => readonly (FirstCommand & { readonly card: OverviewCard })[];
  /** For those who hold the root token, who are on the machine or have its environment. */
  readonly rootTokenExpression: string;
}

/** A token is 50 characters, a root token from the environment may be longer; this leaves room and no more. */
const MAX_LOGIN_BYTES = 8 * 1024;
const login = z.strictObject({ token: z.string().trim().min(1) });

export class SessionDoor {
  readonly #parts: SessionDoorParts;

  constructor(parts: SessionDoorParts) {
    this.#parts = parts;
  }

  /** Exchanges the code of a login link; a used or expired one leads to the login page, which says so. */
  async loginByLink(request: HttpRequest, response: HttpResponse, code: string): Promise<void> {
    const { sessions, allowedHosts } = this.#parts;
    requireOwnHost(request, allowedHosts);
    const headers: Record<string, string> = { "cache-control": "no-store", "referrer-policy": "no-referrer" };
    if (sessions.takeLoginCode(code)) {
      const { secret } = await sessions.open({ kind: "root" });
      headers["set-cookie"] = setCookie(request, secret, SESSION_LIFETIME_MS);
      headers["location"] = "/dashboard/";
    } else {
      this.#parts.failures.record(request.socket.remoteAddress);
      headers["location"] = "/dashboard/login?expired";
    }
    response.writeHead(303, headers);
    response.end();
  }

  async session(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    if (request.method === "GET") {
      const session = this.#parts.authenticator.findSession(request);
      sendResult(response, session === null ? null : this.#describe(session.principal, session.expiresAt));
    } else if (request.method === "POST") {
      await this.#login(request, response, context);
    } else if (request.method === "DELETE") {
      requireOwnPage(request, this.#parts.allowedHosts);
      for (const secret of sessionSecrets(request)) await this.#parts.sessions.close(secret);
      sendResult(response, null, { "set-cookie": clearCookie(request) });
    } else {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, POST, DELETE" } });
    }
  }

  firstCommands(request: HttpRequest, response: HttpResponse): void {
    const principal = this.#parts.authenticator.fromRequest(request);
    if (principal === null) throw new SignalboxError("unauthenticated");
    const expression = principal.kind === "root" ? this.#parts.rootTokenExpression : "$SIGNALBOX_TOKEN";
    sendResult(response, this.#parts.firstCommands(request, expression));
  }

  async #login(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    requireOwnPage(request, this.#parts.allowedHosts);
    const { token } = parseLogin(await context.readBody(MAX_LOGIN_BYTES));
    const principal = this.#parts.authenticator.fromText(token);
    if (principal === null) {
      this.#parts.failures.record(request.socket.remoteAddress);
      throw new SignalboxError("unauthenticated", {
        message: "This token is unknown, expired or revoked",
      });
    }
    const { secret, expiresAt } = await this.#parts.sessions.open(principal);
    sendResult(response, this.#describe(principal, expiresAt), {
      "set-cookie": setCookie(request, secret, SESSION_LIFETIME_MS),
    });
  }

  #describe(principal: Principal, expiresAt: number): object {
    const isRoot = principal.kind === "root";
    const visible = isRoot
      ? this.#parts.accounts.list()
      : this.#parts.accounts.list().filter(({ id }) => id === principal.token.accountId);
    return {
      is_root: isRoot,
      token_name: isRoot ? null : principal.token.name,
      permissions: isRoot ? PERMISSIONS : [...principal.token.permissions],
      accounts: visible.map(({ id, name }) => ({ id, name })),
      expires_at: new Date(expiresAt).toISOString(),
      version: this.#parts.version,
      gateway_id: boundGateway(principal),
      traffic_url: this.#parts.trafficUrl(),
    };
  }
}

function parseLogin(body: Buffer): z.output<typeof login> {
  try {
    return login.parse(JSON.parse(body.toString("utf8")));
  } catch {
    throw new SignalboxError("invalid_request", { message: 'The body must be {"token": "…"}' });
  }
}

function sendResult(response: HttpResponse, result: unknown, headers: Record<string, string> = {}): void {
  const body = JSON.stringify({ success: true, errors: [], messages: [], result });
  response.writeHead(200, {
    ...headers,
    "content-type": "application/json; charset=utf-8",
    "content-length": Buffer.byteLength(body),
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
  });
  response.end(body);
}
