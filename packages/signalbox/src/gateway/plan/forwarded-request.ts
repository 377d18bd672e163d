/**
 * What of a caller's request goes to a provider: one set of rules for plain calls and for the steps of the universal endpoint.
 *
 * Never forwarded: gateway headers (they may contain a token of this service), hop-by-hop headers, framing and `host` (written by the
 * relay), cookies (the dashboard's session is one), what proxies in front of this service add about the caller (its address,
 * certificate and identity), and what a browser adds about the page. Names with underscores are judged with hyphens, as many servers
 * read them.
 *
 * A token of this service must not leave it. Tokens are recognised by their form and checksum, the root token by comparison. The token of the
 * call is dropped from the places of a provider's key (`keys/caller-token.ts`); any other token, and a token in any other place, is refused.
 * See docs/decisions/0071 and gateway/README.md.
 */
import { isTokenShaped, SignalboxError } from "@signalbox/protocol";
import { type CallOptions, CallOptionsReader, gatewayHeaderName, NO_OPTIONS } from "../step/call-options.ts";

/** `drop`: not forwarded; `option`: read by the gateway; `pass`: forwarded. */
type HeaderFate = "drop" | "option" | "pass";

interface HeaderRule {
  /** Lower case. */
  readonly name: string;
  readonly fate: HeaderFate;
}

const DROPPED: ReadonlySet<string> = new Set([
  // Framing, connection and cookies. `accept-encoding` and `traceparent` are replaced.
  "accept-encoding",
  "connection",
  "content-length",
  "cookie",
  "cookie2",
  "expect",
  "host",
  "http2-settings",
  "keep-alive",
  "max-forwards",
  "proxy-authenticate",
  "proxy-authorization",
  "proxy-connection",
  "te",
  "traceparent",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "via",
  // The caller, as described by proxies.
  "cdn-loop",
  "client-cert",
  "client-cert-chain",
  "client-ip",
  "fastly-client-ip",
  "fly-client-ip",
  "forwarded",
  "remote-user",
  "true-client-ip",
  "x-arr-clientcert",
  "x-client-ip",
  "x-cluster-client-ip",
  "x-goog-iap-jwt-assertion",
  "x-real-ip",
  "x-remote-user",
  // The method: what a call costs is decided by the one that was sent.
  "x-http-method",
  "x-http-method-override",
  "x-method-override",
  // The page, as described by a browser.
  "dnt",
  "origin",
  "referer",
  "upgrade-insecure-requests",
]);

const DROPPED_PREFIXES = [
  "cf-",
  "sec-",
  "ssl-client-",
  "tailscale-user-",
  "x-amzn-oidc-",
  "x-auth-request-",
  "x-azure-",
  "x-client-cert",
  "x-envoy-",
  "x-forwarded-",
  "x-goog-authenticated-user-",
  "x-ms-client-principal",
  "x-original-",
  "x-ssl-",
];

/**
 * Headers that name the client, the trace or the attempt. Some clients change them with every call. `idempotency-key` is one of them: it
 * identifies the attempt, not the content.
 */
const NEUTRAL: ReadonlySet<string> = new Set([
  "accept-encoding",
  "b3",
  "baggage",
  "content-length",
  "date",
  "idempotency-key",
  "request-id",
  "sentry-trace",
  "traceparent",
  "tracestate",
  "uber-trace-id",
  "user-agent",
  "x-amzn-trace-id",
  "x-client-request-id",
  "x-cloud-trace-context",
  "x-correlation-id",
  "x-request-id",
]);

const NEUTRAL_PREFIXES = ["x-b3-", "x-datadog-", "x-stainless-"];

/** Names repeat from call to call, so each spelling is judged once. Bounded, because callers choose the names. */
const rules = new Map<string, HeaderRule>();
const MAX_RULES = 1000;
const MAX_KEPT_NAME = 64;

function headerRule(raw: string): HeaderRule {
  let rule = rules.get(raw);
  if (rule === undefined) {
    const name = raw.toLowerCase();
    rule = { name, fate: judge(name) };
    if (rules.size < MAX_RULES && raw.length <= MAX_KEPT_NAME) rules.set(raw, rule);
  }
  return rule;
}

/** True when no response depends on the header: calls that differ only in neutral headers may share a cached response. Takes lower case. */
export function isNeutral(name: string): boolean {
  return NEUTRAL.has(name) || NEUTRAL_PREFIXES.some((prefix) => name.startsWith(prefix));
}

function judge(name: string): HeaderFate {
  const option = gatewayHeaderName(name);
  // The token is read from the request itself, before its other headers.
  if (option !== null) return option === "authorization" ? "drop" : "option";
  const hyphenated = name.replaceAll("_", "-");
  const isDropped =
    DROPPED.has(hyphenated) ||
    gatewayHeaderName(hyphenated) !== null ||
    DROPPED_PREFIXES.some((prefix) => hyphenated.startsWith(prefix));
  return isDropped ? "drop" : "pass";
}

export const NO_CREDENTIAL: readonly string[] = [];

export interface ForwardedHeaders {
  readonly options: CallOptions;
  /** Name, value, name, value, … without the provider's credential. */
  readonly headers: readonly string[];
  /** The caller's credential for the provider, in the same form; empty when the caller sent none. */
  readonly credential: readonly string[];
}

/**
 * Sorts the headers of a request in one pass: options of the gateway, the credential, and the headers to forward. `callerText` is the token of
 * the call, which is dropped. Throws `gateway_unauthorized` when a header to forward contains another token of this service.
 */
export function readForwardedHeaders(
  rawHeaders: readonly string[],
  connection: string | undefined,
  credentialHeaders: readonly string[],
  root: RootTokenCheck,
  callerText: string | null = null,
): ForwardedHeaders {
  const hopByHop = connectionNames(connection);
  let reader: CallOptionsReader | null = null;
  const headers: string[] = [];
  const credential: string[] = [];
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const raw = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    const { name, fate } = headerRule(raw);
    if (fate === "drop" || hopByHop?.has(name) === true) continue;
    if (fate === "option") {
      reader ??= new CallOptionsReader();
      reader.add(name, value);
      continue;
    }
    if (callerText !== null && isCallerToken(name, value, callerText)) continue;
    refuseOwnToken(root, value);
    if (credentialHeaders.includes(name)) credential.push(name, value);
    else headers.push(raw, value);
  }
  return { options: reader?.options ?? NO_OPTIONS, headers, credential };
}

/** The options alone, for a request whose headers are not forwarded. */
export function readCallOptions(rawHeaders: readonly string[]): CallOptions {
  const reader = new CallOptionsReader();
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const { name, fate } = headerRule(rawHeaders[i] ?? "");
    if (fate === "option") reader.add(name, rawHeaders[i + 1] ?? "");
  }
  return reader.options;
}

/** Names that the caller's `Connection` header declares hop-by-hop; null in the usual case of none. */
function connectionNames(connection: string | undefined): ReadonlySet<string> | null {
  if (connection === undefined || connection === "keep-alive" || connection === "close") return null;
  return new Set(connection.split(",").map((name) => name.trim().toLowerCase()));
}

/** Backslashes and encoded separators count too: servers differ in how they read `%2e%2e%2f` and `..\`. */
const DOT_SEGMENT = /(?:^|[/\\])\.{1,2}(?:[/\\]|$)/;

/** Throws for a path with a `.` or `..` segment, however it is written: it could leave the provider's base address. */
export function checkProviderPath(path: string): void {
  if (!path.includes(".") && !path.includes("%")) return;
  if (DOT_SEGMENT.test(decodePath(path))) {
    throw new SignalboxError("gateway_malformed_request", {
      message: "The path must not contain . or .. segments",
    });
  }
}

export function decodePath(text: string): string {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    throw new SignalboxError("gateway_malformed_request", {
      message: "The path is not valid percent-encoded UTF-8",
    });
  }
}

/** The part of the authenticator that recognises the root token. */
export interface RootTokenCheck {
  isRootToken(text: string): boolean;
}

const TOKEN_PREFIX = "sbx_";
const TOKEN = /sbx_[0-9A-Za-z]{46}/g;
/** The root token has at least this many characters, other tokens have more; shorter texts are not examined. */
const MIN_TOKEN_LENGTH = 20;

/** Throws `gateway_unauthorized` when the target to forward contains a token of this service: some APIs take the key in the query. */
export function refuseOwnTokenInTarget(root: RootTokenCheck, path: string, query: string): void {
  if (
    path.length >= MIN_TOKEN_LENGTH &&
    (containsToken(decodeAscii(path)) || path.split("/").some((part) => root.isRootToken(decodeAscii(part))))
  ) {
    throw misplacedToken();
  }
  if (query.length < MIN_TOKEN_LENGTH) return;
  if (containsToken(decodeAscii(query))) throw misplacedToken();
  for (const pair of query.split("&")) {
    if (root.isRootToken(decodeAscii(pair.slice(pair.indexOf("=") + 1)))) throw misplacedToken();
  }
}

/** Headers in which SDKs send a provider's key. */
export const KEY_HEADERS: readonly string[] = ["authorization", "x-api-key", "x-goog-api-key", "api-key"];

function isCallerToken(name: string, value: string, callerText: string): boolean {
  if (!value.endsWith(callerText) || !KEY_HEADERS.includes(name)) return false;
  return name === "authorization"
    ? /^bearer +$/i.test(value.slice(0, -callerText.length))
    : value === callerText;
}

function refuseOwnToken(root: RootTokenCheck, value: string): void {
  if (value.length < MIN_TOKEN_LENGTH) return;
  if (containsToken(value) || root.isRootToken(value)) throw misplacedToken();
  const space = value.indexOf(" ");
  if (space === -1) return;
  const credential = value.slice(space + 1).trim();
  if (root.isRootToken(credential)) throw misplacedToken();
  if (space === 5 && value.slice(0, 5).toLowerCase() === "basic") {
    const decoded = Buffer.from(credential, "base64").toString("latin1");
    if (containsToken(decoded) || decoded.split(":").some((part) => root.isRootToken(part))) {
      throw misplacedToken();
    }
  }
}

function containsToken(text: string): boolean {
  if (!text.includes(TOKEN_PREFIX)) return false;
  return text.match(TOKEN)?.some(isTokenShaped) === true;
}

/** Decodes escapes of ASCII one by one: a text that is not valid UTF-8 as a whole may still contain a token. */
function decodeAscii(text: string): string {
  if (!text.includes("%")) return text;
  return text.replaceAll(/%([0-7][0-9a-f])/gi, (_, hex: string) =>
    String.fromCharCode(Number.parseInt(hex, 16)),
  );
}

function misplacedToken(): SignalboxError {
  return new SignalboxError("gateway_unauthorized", {
    message: "A Signalbox token stands where the provider's key belongs; send it as gw-aig-authorization",
  });
}
