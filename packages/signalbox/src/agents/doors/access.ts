/**
 * Who may reach instances through `/agents/…`, and of which account: the paths name none. A token selects its own account. Without a token,
 * where access is public or the operator's hook admits the caller, the account is `default`. The root token also selects `default`, unless
 * the query parameter `account` or the header `signalbox-account` names another account.
 *
 * `edit`: call methods, send messages, set the state, any HTTP method. `read`: a read-only connection, or GET and HEAD.
 */
import type { HttpRequest } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import { type Authenticator, isAllowed, type Principal } from "../../accounts/index.ts";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import { STRANGERS } from "../../core/shared-pool.ts";
import { within } from "../../core/within.ts";
import { toWebRequest } from "./web-request.ts";

export type AccessLevel = "read" | "edit";

export interface Access {
  /** The account of the instances. */
  readonly account: string;
  readonly level: AccessLevel;
  /** The owner of the credential; null where none was needed or the operator's hook decided. Connections end with the credential. */
  readonly principal: Principal | null;
  /** True for an unauthenticated caller where access is public. */
  readonly isStranger: boolean;
  /** What `authorize` found out about the caller, for the agent. */
  readonly identity: CallerIdentity | null;
}

/** The operator's hook accepted a credential of its own: it stays in the request, so that the agent can read it too. */
export interface CallerIdentity {
  readonly props: unknown;
  /** Set on the request, in place of what the caller sent under these names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The request carries a credential of ours besides, which agents must not see. */
  readonly hidesCredential: boolean;
}

/** Who holds what a request uses of what all accounts share. */
export function holderOf({ isStranger, account }: Access): string {
  return isStranger ? STRANGERS : account;
}

/** A hook that never returns must not hold connections. */
const AUTHORIZE_TIMEOUT_MS = 10_000;

export interface AccessOptions {
  readonly mode: "token" | "public";
  /** Called when the request carries no valid token. */
  readonly authorize?: AuthorizeHook | undefined;
  readonly authenticator: Authenticator;
  readonly accountExists: (id: string) => boolean;
}

/** `"edit"` or true allows everything, `"read"` makes a connection read-only, false refuses. An object passes the caller's identity on. */
export type AuthorizeHook = (request: Request) => AccessAnswer | Promise<AccessAnswer>;
type AccessAnswer = AccessLevel | boolean | AuthorizedCaller;

interface AuthorizedCaller {
  readonly level: AccessLevel;
  readonly props?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

const ACCOUNT_HEADER = "signalbox-account";

/** The access that the request's credential gives. Throws `unauthenticated` or `forbidden` when it gives none, `not_found` for an unknown account. */
export function findAccess(
  options: AccessOptions,
  request: HttpRequest,
  query: string,
): Access | Promise<Access> {
  const parameters = query === "" ? null : new URLSearchParams(query);
  const named = findNamedAccount(request, parameters);
  const isPublic = options.mode === "public";
  const principal = findPrincipal(options, request, parameters, named);
  const account = accountOf(options, principal, named);
  const mayEdit = principal !== null && isAllowed(principal, account, "agents.edit");
  if (isPublic && account === DEFAULT_ACCOUNT) {
    return { account, level: "edit", principal: null, isStranger: !mayEdit, identity: null };
  }
  if (principal !== null) {
    if (mayEdit) return { account, level: "edit", principal, isStranger: false, identity: null };
    if (isAllowed(principal, account, "agents.read")) {
      return { account, level: "read", principal, isStranger: false, identity: null };
    }
  }
  if (options.authorize !== undefined && !isPublic) {
    const hidesCredential = principal !== null || hasOwnToken(options.authenticator, parameters);
    return callHook(options.authorize, request, account, hidesCredential);
  }
  throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
}

/** Null when the request names no account. No account has an empty name. */
function findNamedAccount(request: HttpRequest, parameters: URLSearchParams | null): string | null {
  const header = request.headers[ACCOUNT_HEADER];
  const named = parameters?.getAll("account") ?? [];
  if (typeof header === "string") named.push(header);
  if (named.some((account) => account !== named[0])) {
    throw new SignalboxError("invalid_request", {
      message: `The parameter "account" and the header "${ACCOUNT_HEADER}" name different accounts`,
    });
  }
  return named[0] ?? null;
}

/**
 * The `authorization` header, the query parameter `token` (for clients that cannot set headers), or the dashboard's session. Where access is
 * public, a session counts only for a request that names an account: other pages may send the cookie without knowing.
 */
function findPrincipal(
  { authenticator, mode }: AccessOptions,
  request: HttpRequest,
  parameters: URLSearchParams | null,
  named: string | null,
): Principal | null {
  if (request.headers.authorization !== undefined) return authenticator.fromRequest(request);
  const text = parameters?.get("token") ?? "";
  if (text !== "") return authenticator.fromText(text);
  return mode === "public" && named === null ? null : authenticator.fromRequest(request);
}

function accountOf(options: AccessOptions, principal: Principal | null, named: string | null): string {
  if (principal?.kind === "root") {
    const account = named ?? DEFAULT_ACCOUNT;
    if (!options.accountExists(account)) {
      throw new SignalboxError("not_found", { message: `Account "${account}" not found` });
    }
    return account;
  }
  const own = principal?.token.accountId ?? DEFAULT_ACCOUNT;
  // The error is the same whether or not the named account exists.
  if (named !== null && named !== own) {
    throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
  }
  return own;
}

/** A parameter beside an `authorization` header is not the caller's credential, but it may be a token of ours. */
function hasOwnToken(authenticator: Authenticator, parameters: URLSearchParams | null): boolean {
  const text = parameters?.get("token") ?? "";
  return text !== "" && authenticator.fromText(text) !== null;
}

async function callHook(
  authorize: AuthorizeHook,
  request: HttpRequest,
  account: string,
  hidesCredential: boolean,
): Promise<Access> {
  const decision = Promise.resolve(authorize(toWebRequest(request, request.url ?? "/")));
  const answer = await within(decision, AUTHORIZE_TIMEOUT_MS, () => overloaded());
  const caller: { level: unknown; props?: unknown; headers?: AuthorizedCaller["headers"] } =
    typeof answer === "object" && answer !== null ? answer : { level: answer === true ? "edit" : answer };
  const { level, props, headers = {} } = caller;
  if (level !== "edit" && level !== "read") throw new SignalboxError("unauthenticated");
  const identity = { props, headers, hidesCredential };
  return { account, level, principal: null, isStranger: false, identity };
}

/** How the request of an admitted caller is passed on to agents' code. `isPublic`: callers need no credential of ours. */
export function passOn({ identity }: Access, target: string, isPublic: boolean) {
  const isHidden = identity === null ? !isPublic : identity.hidesCredential;
  return {
    target: identity !== null && !identity.hidesCredential ? target : withoutToken(target),
    options: { isCredentialHidden: isHidden, headers: identity?.headers },
  };
}

/** The request target without the token, for agents' code and logs. A name may be percent-encoded: `%74oken`. */
export function withoutToken(target: string): string {
  const question = target.indexOf("?");
  if (question === -1) return target;
  const pairs = target.slice(question + 1).split("&");
  const rest = pairs.filter((pair) => !isToken(pair));
  if (rest.length === pairs.length) return target;
  const path = target.slice(0, question);
  return rest.length === 0 ? path : `${path}?${rest.join("&")}`;
}

function isToken(pair: string): boolean {
  const [name = ""] = pair.split("=", 1);
  // Decoded only if it must be: most requests have a query without a token.
  return name === "token" || (name.includes("%") && new URLSearchParams(pair).has("token"));
}
