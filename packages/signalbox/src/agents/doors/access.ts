/**
 * Who may reach instances through `/agents/…`, and those of which account: paths carry none. A token means its own account. Without one, where
 * access is public or the operator's hook lets the caller in, the account `default` is meant. The root token means `default`, too, unless the query
 * parameter `account` or the header `signalbox-account` names another.
 *
 * `edit`: call methods, send messages, set the state, any HTTP method. `read`: a read-only connection, or GET and HEAD.
 */
import type { HttpRequest } from "../../engines/http-server/index.ts";
import { SignalboxError } from "@signalbox/protocol";
import { type Authenticator, isAllowed, type Principal } from "../../accounts/index.ts";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import { within } from "../../core/within.ts";
import { toWebRequest } from "./web-request.ts";

export type AccessLevel = "read" | "edit";

export interface Access {
  /** The account whose instances are meant. */
  readonly account: string;
  readonly level: AccessLevel;
  /** Whose credential gave it; null where none was needed or the operator's hook decided. What it opens ends with the credential. */
  readonly principal: Principal | null;
  /** True where access is public and nothing says who asks. */
  readonly isStranger: boolean;
}

/** A hook that does not answer must not hold connections for ever. */
const AUTHORIZE_TIMEOUT_MS = 10_000;

export interface AccessOptions {
  readonly mode: "token" | "public";
  /** Asked when the request carries no valid token. */
  readonly authorize?: AuthorizeHook | undefined;
  readonly authenticator: Authenticator;
  readonly accountExists: (id: string) => boolean;
}

/** `"edit"` or true lets everything through, `"read"` makes a connection read-only, false refuses. */
export type AuthorizeHook = (request: Request) => AccessAnswer | Promise<AccessAnswer>;
type AccessAnswer = AccessLevel | boolean;

const ACCOUNT_HEADER = "signalbox-account";

/** What the request's credential gives; throws `unauthenticated` or `forbidden` when it gives nothing, `not_found` for an unknown account. */
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
    return { account, level: "edit", principal: null, isStranger: !mayEdit };
  }
  if (principal !== null) {
    if (mayEdit) return { account, level: "edit", principal, isStranger: false };
    if (isAllowed(principal, account, "agents.read")) {
      return { account, level: "read", principal, isStranger: false };
    }
  }
  if (options.authorize !== undefined && !isPublic) return ask(options.authorize, request, account);
  throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
}

/** Null when the request names none. An empty name is one that no account has. */
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
 * A header or the dashboard's session decides; the query is for clients that can set neither. Where access is public, a session counts only for a
 * request that names an account: other pages may send it along unknowingly, and need none.
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
  // No answer tells strangers, or tokens of other accounts, whether the account exists.
  if (named !== null && named !== own) {
    throw new SignalboxError(principal === null ? "unauthenticated" : "forbidden");
  }
  return own;
}

async function ask(authorize: AuthorizeHook, request: HttpRequest, account: string): Promise<Access> {
  const asked = Promise.resolve(authorize(toWebRequest(request, request.url ?? "/")));
  const answer = await within(asked, AUTHORIZE_TIMEOUT_MS, () => new SignalboxError("overloaded"));
  if (answer === true || answer === "edit")
    return { account, level: "edit", principal: null, isStranger: false };
  if (answer === "read") return { account, level: "read", principal: null, isStranger: false };
  throw new SignalboxError("unauthenticated");
}

/** The target without the credential, for agents' code and logs. */
export function withoutToken(target: string): string {
  if (!target.includes("token=")) return target;
  const [path = "", query = ""] = target.split("?", 2);
  const rest = query.split("&").filter((pair) => !pair.startsWith("token=") && pair !== "token");
  return rest.length === 0 ? path : `${path}?${rest.join("&")}`;
}
