/**
 * What becomes of each request header on its way to a provider. One rule for plain calls and for the steps of the universal endpoint.
 *
 * Never forwarded: gateway headers (they may hold our token), hop-by-hop headers, framing and `host` (made anew), cookies (they belong to
 * this origin: the dashboard's session is one), what proxies before us say about the caller (its address, certificate and identity are
 * nobody else's business, and a provider behind the same kind of proxy would believe it), and what a browser says about the page. A name
 * written with underscores is judged by what servers that fold them to hyphens would read.
 */
import { gatewayHeaderName } from "./call-options.ts";

/** `drop`: not forwarded; `option`: for the gateway; `pass`: forwarded. */
type HeaderFate = "drop" | "option" | "pass";

export interface HeaderRule {
  /** Lower case. */
  readonly name: string;
  readonly fate: HeaderFate;
}

const DROPPED: ReadonlySet<string> = new Set([
  // Framing, connection and cookies. Responses are asked for unpacked; a trace is continued with our own span.
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
  // The caller as proxies and identity-aware front doors describe it.
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
  // The page, as a browser describes it.
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
 * Who made the request and for which trace; different on every call of some clients. `idempotency-key` is among them: it names the
 * attempt, not the content, and clients make a new one for each call.
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

/** Names repeat from call to call; each spelling is judged once. Bounded, because callers choose them. */
const rules = new Map<string, HeaderRule>();
const MAX_RULES = 1000;
const MAX_KEPT_NAME = 64;

export function headerRule(raw: string): HeaderRule {
  let rule = rules.get(raw);
  if (rule === undefined) {
    const name = raw.toLowerCase();
    rule = { name, fate: judge(name) };
    if (rules.size < MAX_RULES && raw.length <= MAX_KEPT_NAME) rules.set(raw, rule);
  }
  return rule;
}

/** Whether an answer cannot depend on the header, so that calls that differ in it alone may share one. Takes lower case. */
export function isNeutral(name: string): boolean {
  return NEUTRAL.has(name) || NEUTRAL_PREFIXES.some((prefix) => name.startsWith(prefix));
}

function judge(name: string): HeaderFate {
  if (gatewayHeaderName(name) !== null) return "option";
  const folded = name.replaceAll("_", "-");
  const isDropped =
    DROPPED.has(folded) ||
    gatewayHeaderName(folded) !== null ||
    DROPPED_PREFIXES.some((prefix) => folded.startsWith(prefix));
  return isDropped ? "drop" : "pass";
}
