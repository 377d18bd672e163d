/**
 * Who may reach instances through `/agents/…`. Paths carry no account: instances belong to the account `default`, and a token of another
 * account is refused.
 *
 * `edit`: call methods, send messages, set the state, any HTTP method. `read`: a read-only connection, or GET and HEAD.
 */
import type { IncomingMessage } from "node:http";
import { SignalboxError } from "@signalbox/protocol";
import { type Authenticator, isAllowed, type Principal } from "../../accounts/index.ts";
import { within } from "../../core/within.ts";
import { toWebRequest } from "./web-request.ts";

export type AccessLevel = "read" | "edit";

/** The account all instances belong to. */
export const AGENTS_ACCOUNT = "default";

/** A hook that does not answer must not hold connections for ever. */
const AUTHORIZE_TIMEOUT_MS = 10_000;

export interface AccessOptions {
  readonly mode: "token" | "public";
  /** Asked when the request carries no valid token. */
  readonly authorize?: AuthorizeHook | undefined;
  readonly authenticator: Authenticator;
}

/** `"edit"` or true lets everything through, `"read"` makes a connection read-only, false refuses. */
export type AuthorizeHook = (request: Request) => AccessAnswer | Promise<AccessAnswer>;
type AccessAnswer = AccessLevel | boolean;

/** The level the request's credential gives; throws `unauthenticated` or `forbidden` when it gives none. */
export function findAccess(
  options: AccessOptions,
  request: IncomingMessage,
  query: string,
): AccessLevel | Promise<AccessLevel> {
  if (options.mode === "public") return "edit";
  const principal = findPrincipal(options.authenticator, request, query);
  if (principal !== null) {
    if (isAllowed(principal, AGENTS_ACCOUNT, "agents.edit")) return "edit";
    if (isAllowed(principal, AGENTS_ACCOUNT, "agents.read")) return "read";
  }
  if (options.authorize !== undefined) return ask(options.authorize, request);
  throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
}

/** True when the request carries a token that may edit, also where none is needed. */
export function hasEditToken(
  { authenticator }: AccessOptions,
  request: IncomingMessage,
  query: string,
): boolean {
  const principal = findPrincipal(authenticator, request, query);
  return principal !== null && isAllowed(principal, AGENTS_ACCOUNT, "agents.edit");
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

async function ask(authorize: AuthorizeHook, request: IncomingMessage): Promise<AccessLevel> {
  const asked = Promise.resolve(authorize(toWebRequest(request, request.url ?? "/")));
  const answer = await within(asked, AUTHORIZE_TIMEOUT_MS, () => new SignalboxError("overloaded"));
  if (answer === true || answer === "edit") return "edit";
  if (answer === "read") return "read";
  throw new SignalboxError("unauthenticated");
}

/** The target without the credential, for agents' code and logs. */
export function withoutToken(target: string): string {
  if (!target.includes("token=")) return target;
  const [path = "", query = ""] = target.split("?", 2);
  const rest = query.split("&").filter((pair) => !pair.startsWith("token=") && pair !== "token");
  return rest.length === 0 ? path : `${path}?${rest.join("&")}`;
}
