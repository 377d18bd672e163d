/**
 * Who may reach instances through `/agents/…`. Paths carry no account: instances belong to the account `default`, and a token of another
 * account is refused.
 *
 * `edit`: call methods, send messages, set the state, any HTTP method. `read`: a read-only connection, or GET and HEAD.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { type Authenticator, isAllowed, type Principal } from "../../accounts/index.ts";
import { toWebRequest } from "./web-request.ts";

export type AccessLevel = "read" | "edit";

export interface Access {
  readonly level: AccessLevel;
  /** Whose credential gave it; null where none was needed or the operator's hook decided. What it opens ends with the credential. */
  readonly principal: Principal | null;
}

const PUBLIC: Access = { level: "edit", principal: null };

/** The account all instances belong to. */
export const AGENTS_ACCOUNT = "default";

export interface AccessOptions {
  readonly mode: "token" | "public";
  /** Asked when the request carries no valid token. */
  readonly authorize?: AuthorizeHook | undefined;
  readonly authenticator: Authenticator;
}

/** `"edit"` or true lets everything through, `"read"` makes a connection read-only, false refuses. */
export type AuthorizeHook = (request: Request) => AccessAnswer | Promise<AccessAnswer>;
type AccessAnswer = AccessLevel | boolean;

/** What the request's credential gives; throws `unauthenticated` or `forbidden` when it gives none. */
export function findAccess(
  options: AccessOptions,
  request: IncomingMessage,
  query: string,
): Access | Promise<Access> {
  if (options.mode === "public") return PUBLIC;
  const principal = findPrincipal(options.authenticator, request, query);
  if (principal !== null) {
    if (isAllowed(principal, AGENTS_ACCOUNT, "agents.edit")) return { level: "edit", principal };
    if (isAllowed(principal, AGENTS_ACCOUNT, "agents.read")) return { level: "read", principal };
  }
  if (options.authorize !== undefined) return ask(options.authorize, request);
  throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
}

/** A header or the dashboard's session decides; the query is for clients that can set neither. */
function findPrincipal(
  authenticator: Authenticator,
  request: IncomingMessage,
  query: string,
): Principal | null {
  const text = query === "" ? null : new URLSearchParams(query).get("token");
  if (text === null || text === "" || request.headers.authorization !== undefined)
    return authenticator.fromRequest(request);
  return authenticator.fromText(text);
}

async function ask(authorize: AuthorizeHook, request: IncomingMessage): Promise<Access> {
  const answer = await authorize(toWebRequest(request, request.url ?? "/"));
  if (answer === true || answer === "edit") return { level: "edit", principal: null };
  if (answer === "read") return { level: "read", principal: null };
  throw new SignalboxError("unauthenticated");
}

/** The target without the credential, for agents' code and logs. */
export function withoutToken(target: string): string {
  if (!target.includes("token=")) return target;
  const [path = "", query = ""] = target.split("?", 2);
  const rest = query.split("&").filter((pair) => !pair.startsWith("token=") && pair !== "token");
  return rest.length === 0 ? path : `${path}?${rest.join("&")}`;
}
