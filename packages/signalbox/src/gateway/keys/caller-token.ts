/**
 * The token of a call: where it may be, and which one counts.
 *
 * Places, in this order: `gw-aig-authorization` (`cf-aig-authorization`), and the places in which SDKs put a provider's key: `Authorization: Bearer`,
 * `x-api-key`, `x-goog-api-key`, `api-key`, WebSocket sub-protocols (`gw-aig-authorization.<token>`, `openai-insecure-api-key.<token>`, and the name of
 * one of these headers before the token), and Google's query parameter `key`. An SDK that knows only an API key can therefore use a Signalbox token
 * as its key.
 *
 * Invariants:
 * 1. A text with the form and checksum of a token is never sent upstream. Here it is removed from the query; `readForwardedHeaders` drops it from the
 *    headers if it is the token of the call, and refuses the call otherwise.
 * 2. With authentication on, exactly one text may be offered, however often, and it must be a live token with `gateway.run` for this gateway.
 * 3. With authentication off, a live token of the account identifies the call, so that its limits and metadata apply. A wrong text in the gateway's own
 *    header is ignored, as the contract says. A wrong token in the place of a provider's key is refused: it can be meant for no one else, and without
 *    it the call would run without the limits that its sender expects.
 * 4. Two different tokens that count are refused: neither this service nor a proxy in front of it could say which one is meant.
 * 5. The root token is accepted in the gateway's own header only; it is not a key to configure in an SDK.
 * See docs/decisions/0117.
 */
import { isTokenShaped, SignalboxError } from "@signalbox/protocol";
import {
  type Authenticator,
  bearerText,
  isAllowed,
  type Principal,
  type Token,
} from "../../accounts/index.ts";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import { STRANGERS } from "../../core/shared-pool.ts";
import type { HttpRequest } from "../../engines/http-server/index.ts";
import type { Gateway } from "../settings/gateway.ts";

export interface Caller {
  /** `root` for the root token; null for a call without a token. */
  readonly tokenId: string | null;
  readonly token: Token | null;
  /** A valid token was sent, also the root token. */
  readonly isAuthenticated: boolean;
  /** The text of the token, if it was in a place of a provider's key: it must not be forwarded from there. */
  readonly text: string | null;
  /** The query without the token. */
  readonly query: string;
}

const PREFIX = "sbx_";
const BEARER_LENGTH = 7;
const KEY_HEADERS = ["x-api-key", "x-goog-api-key", "api-key"] as const;
/** A browser cannot send headers with a WebSocket: `<name>.<token>` takes their place. */
const SUBPROTOCOL_NAMES: ReadonlySet<string> = new Set([
  "gw-aig-authorization",
  "cf-aig-authorization",
  "openai-insecure-api-key",
  "authorization",
  ...KEY_HEADERS,
]);

/** Whose share of memory and places a call uses (`core/shared-pool.ts`). */
export function holderOf(
  { isAuthenticated }: Pick<Caller, "isAuthenticated">,
  { accountId }: Gateway,
): string {
  return isAuthenticated ? accountId : STRANGERS;
}

/** A stored key is the operator's money; without a token, every client that reaches the listener could spend it. */
export function mayUseStoredKeys({ settings }: Gateway, isAuthenticated: boolean): boolean {
  return isAuthenticated || settings.allow_anonymous_keys;
}

/**
 * Throws `gateway_unauthorized`. The error is the same whatever is wrong with a token: it does not reveal whether the token exists. `mayExplain`: its
 * text may name the remedy.
 */
export function identifyCaller(
  authenticator: Authenticator,
  gateway: Gateway,
  request: HttpRequest,
  query: string,
  mayExplain = false,
): Caller {
  const { headers, socket } = request;
  const own = headers["gw-aig-authorization"] ?? headers["cf-aig-authorization"];
  const ownText = typeof own === "string" ? bearerText(own) : null;
  const place = findKeyPlace(request, query);
  if (!gateway.settings.authentication && ownText === null && place === null) return anonymous(query);
  const rest = place === null ? query : place.query;
  const find = (text: string | null) => (text === null ? null : authenticator.fromText(text, socket));
  const isValid = (principal: Principal | null) => principal !== null && mayRun(principal, gateway);
  const principal = find(ownText);
  // With authentication off, a wrong text in the gateway's own header counts for nothing, so it contradicts nothing.
  const countsOwn = gateway.settings.authentication ? ownText !== null : isValid(principal);
  if (place !== null && (place.isAmbiguous || (countsOwn && ownText !== place.text))) {
    throw new SignalboxError("gateway_unauthorized", {
      message: "The request has two different Signalbox tokens",
    });
  }
  if (principal !== null && isValid(principal)) {
    return toCaller(principal, gateway, place?.text ?? null, rest);
  }
  if (gateway.settings.authentication && ownText !== null) throw unauthorized(gateway, mayExplain);
  const fromPlace = find(place?.text ?? null);
  if (place !== null && fromPlace !== null && fromPlace.kind === "token" && isValid(fromPlace)) {
    return toCaller(fromPlace, gateway, place.text, rest);
  }
  if (gateway.settings.authentication || place !== null) throw unauthorized(gateway, mayExplain);
  return anonymous(query);
}

/** The body in the gateway's own format is fixed, so the remedy is in a header, too. */
function unauthorized({ accountId, id }: Gateway, mayExplain: boolean): SignalboxError {
  const account = accountId === DEFAULT_ACCOUNT ? "" : ` --account ${accountId}`;
  const remedy = `send a token of this gateway in gw-aig-authorization; \`signalbox gateway token ${id}${account}\` creates one`;
  return new SignalboxError("gateway_unauthorized", {
    headers: { "www-authenticate": `Bearer realm="${id}", error_description="${remedy}"` },
    ...(mayExplain ? { message: `Unauthorized: ${remedy}` } : {}),
  });
}

function anonymous(query: string): Caller {
  return { tokenId: null, token: null, isAuthenticated: false, text: null, query };
}

function toCaller(principal: Principal, gateway: Gateway, text: string | null, query: string): Caller {
  const isAuthenticated = true;
  if (principal.kind === "token") {
    return { tokenId: principal.token.id, token: principal.token, isAuthenticated, text, query };
  }
  const tokenId = gateway.settings.authentication ? "root" : null;
  return { tokenId, token: null, isAuthenticated, text, query };
}

function mayRun(principal: Principal, gateway: Gateway): boolean {
  if (!isAllowed(principal, gateway.accountId, "gateway.run")) return false;
  if (principal.kind === "root") return true;
  const { gatewayId } = principal.token;
  return gatewayId === null || gatewayId === gateway.id;
}

interface KeyPlace {
  readonly text: string;
  readonly query: string;
  /** Different tokens in different places. */
  readonly isAmbiguous: boolean;
}

/** The token in the places of a provider's key; null in the usual case of none. */
function findKeyPlace({ headers }: HttpRequest, query: string): KeyPlace | null {
  let text: string | null = null;
  let isAmbiguous = false;
  const offer = (found: string) => {
    if (!isTokenShaped(found)) return;
    if (text !== null && text !== found) isAmbiguous = true;
    text ??= found;
  };
  const { authorization } = headers;
  if (authorization?.startsWith(PREFIX, BEARER_LENGTH) === true) offer(bearerText(authorization) ?? "");
  for (const name of KEY_HEADERS) {
    const value = headers[name];
    if (typeof value === "string" && value.startsWith(PREFIX)) offer(value);
  }
  const protocols = headers["sec-websocket-protocol"];
  if (protocols !== undefined) {
    for (const { name, value } of parseSubprotocols(protocols)) {
      if (value !== null && SUBPROTOCOL_NAMES.has(name)) offer(value);
    }
  }
  const rest = query.includes("key=") ? takeFromQuery(query, offer) : query;
  return text === null ? null : { text, query: rest, isAmbiguous };
}

export interface Subprotocol {
  /** As the client sent it. */
  readonly text: string;
  /** Before the first dot, in lower case. */
  readonly name: string;
  /** Behind the first dot; null without a dot. */
  readonly value: string | null;
}

/** The elements of `Sec-WebSocket-Protocol`. */
export function parseSubprotocols(header: string): Subprotocol[] {
  return header
    .split(",")
    .map((part) => part.trim())
    .filter((text) => text !== "")
    .map((text) => {
      const dot = text.indexOf(".");
      return {
        text,
        name: (dot === -1 ? text : text.slice(0, dot)).toLowerCase(),
        value: dot === -1 ? null : text.slice(dot + 1),
      };
    });
}

/** Offers tokens in `key` and returns the query without them. */
function takeFromQuery(query: string, offer: (text: string) => void): string {
  const pairs = query.split("&");
  const kept = pairs.filter((pair) => {
    if (!pair.startsWith("key=")) return true;
    const value = decoded(pair.slice(4));
    if (!isTokenShaped(value)) return true;
    offer(value);
    return false;
  });
  return kept.length === pairs.length ? query : kept.join("&");
}

function decoded(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
