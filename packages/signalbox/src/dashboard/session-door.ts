/**
 * The requests of the dashboard's page that are not management requests:
 *
 *   GET    /dashboard/login?code=…   exchanges the code of a login link for a session and redirects, which removes the code from the address bar
 *   GET    /dashboard/session        describes the session; `result` is null without a session, because the page requests it at every start
 *   POST   /dashboard/session        `{token}`: opens a session for a token
 *   DELETE /dashboard/session        closes the session
 *   GET    /dashboard/first-commands returns the commands of the overview, as printed in the terminal
 */
import type { HttpRequest, HttpResponse } from "../engines/http-server/index.ts";
import { PERMISSIONS, SignalboxError } from "@signalbox/protocol";
import { z } from "zod";
import {
  type Accounts,
  type Authenticator,
  boundGateway,
  type BrowserSessions,
  type FailureThrottle,
  type Principal,
} from "../accounts/index.ts";
import type { FirstCommand } from "../area-module.ts";
import type { AuditTrail } from "../contracts/audit-trail.ts";
import type { RequestContext } from "../http/request-context.ts";
import { recordSession } from "./recorded-session.ts";

export interface SessionDoorParts {
  readonly sessions: BrowserSessions;
  readonly authenticator: Authenticator;
  readonly accounts: Accounts;
  readonly audit: AuditTrail;
  /** Counts wrong tokens and codes. */
  readonly failures: Pick<FailureThrottle, "record">;
  readonly clientAddress: (request: HttpRequest) => string | undefined;
  /** Returns the address of the traffic; null if it is the dashboard's address. */
  readonly trafficUrl: () => string | null;
  readonly version: string;
  /** Only root sees the path of the data folder. */
  readonly firstCommands: (request: HttpRequest, isRoot: boolean) => readonly FirstCommand[];
}

const LOGIN = "POST /dashboard/session";
const LOGIN_LINK = "GET /dashboard/login";
const LOGOUT = "DELETE /dashboard/session";

/** A token has 50 characters; a root token from the environment may be longer. */
const MAX_LOGIN_BYTES = 8 * 1024;
const login = z.strictObject({ token: z.string().trim().min(1) });

export class SessionDoor {
  readonly #parts: SessionDoorParts;

  constructor(parts: SessionDoorParts) {
    this.#parts = parts;
  }

  /** Exchanges the code of a login link for a session. For a used or expired code the login page shows an error. */
  async loginByLink(
    request: HttpRequest,
    response: HttpResponse,
    context: RequestContext,
    code: string,
  ): Promise<void> {
    const { sessions, audit, failures, clientAddress } = this.#parts;
    const cookie = await sessions.openWithCode(request, code);
    const event = { request, requestId: context.id, action: "login", operation: LOGIN_LINK } as const;
    if (cookie === null) {
      failures.record(clientAddress(request));
      const refuse = () =>
        Promise.reject(new SignalboxError("unauthenticated", { message: "Unknown login code" }));
      // The page shows the failure; it is thrown only to be recorded.
      await recordSession(audit, { ...event, principal: null }, refuse).catch(() => undefined);
    } else {
      await recordSession(audit, { ...event, principal: { kind: "root" } }, async () => undefined);
    }
    response.writeHead(303, {
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      ...(cookie === null
        ? { location: "/dashboard/login?expired" }
        : { location: "/dashboard/", "set-cookie": cookie }),
    });
    response.end();
  }

  async session(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    if (request.method === "GET") {
      const session = this.#parts.sessions.find(request);
      sendResult(response, session === null ? null : this.#describe(session.principal, session.expiresAt));
    } else if (request.method === "POST") {
      await this.#login(request, response, context);
    } else if (request.method === "DELETE") {
      const principal = this.#parts.sessions.find(request)?.principal ?? null;
      const close = () => this.#parts.sessions.close(request);
      // Without a session there is nothing to record.
      const event = {
        request,
        requestId: context.id,
        action: "logout",
        operation: LOGOUT,
        principal,
      } as const;
      const cookie = await (principal === null ? close() : recordSession(this.#parts.audit, event, close));
      sendResult(response, null, { "set-cookie": cookie });
    } else {
      throw new SignalboxError("method_not_allowed", { headers: { allow: "GET, POST, DELETE" } });
    }
  }

  firstCommands(request: HttpRequest, response: HttpResponse): void {
    const principal = this.#parts.authenticator.fromRequest(request);
    if (principal === null) throw new SignalboxError("unauthenticated");
    sendResult(response, this.#parts.firstCommands(request, principal.kind === "root"));
  }

  async #login(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    this.#parts.sessions.requireOwnPage(request);
    const { token } = parseLogin(await context.readBody(MAX_LOGIN_BYTES));
    const principal = this.#parts.authenticator.fromText(token);
    const event = { request, requestId: context.id, action: "login", operation: LOGIN, principal } as const;
    const [known, { cookie, expiresAt }] = await recordSession(this.#parts.audit, event, async () => {
      if (principal === null) {
        this.#parts.failures.record(this.#parts.clientAddress(request));
        throw new SignalboxError("unauthenticated", {
          message: "This token is unknown, expired or revoked",
        });
      }
      return [principal, await this.#parts.sessions.open(request, principal)] as const;
    });
    sendResult(response, this.#describe(known, expiresAt), { "set-cookie": cookie });
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
