/**
 * Builds the response headers for the client: those of the provider, and those that the gateway adds about the call.
 *
 * Dropped are headers of the provider's connection, headers that only the gateway may set, and headers that instruct a browser about this
 * origin (`affectsOrigin` and the list below): the provider is not trusted, and its response comes from the dashboard's origin.
 */
import { affectsOrigin } from "../../http/foreign-answer.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Remaining } from "../limits/limit-rule.ts";
import { gatewayHeaderName } from "../step/call-options.ts";
import type { Step } from "../step/step.ts";
import type { Translation } from "../step/translation.ts";
import type { CallPlan } from "./call-start.ts";

interface ResponseMarks {
  readonly id: string;
  /** Whether the call has a row. */
  readonly isLogged: boolean;
  readonly cacheStatus: "HIT" | "MISS" | null;
  readonly step: number | null;
  readonly errorOrigin: "gateway" | "provider" | null;
  /** Null for calls that did not come through a unified door. */
  readonly translation: Translation | null;
}

const DROPPED: ReadonlySet<string> = new Set([
  // Hop-by-hop.
  "connection",
  "keep-alive",
  "proxy-authenticate",
  "proxy-connection",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  // The cookies would belong to this origin: a client would send them to every provider and to the dashboard.
  "set-cookie",
  "set-cookie2",
  // Instructions to a browser about a document; API clients do not read them.
  "activate-storage-access",
  "document-policy",
  "feature-policy",
  "integrity-policy",
  "no-vary-search",
  "observe-browsing-topics",
  "p3p",
  "permissions-policy",
  "referrer-policy",
  "refresh",
  "sourcemap",
  "speculation-rules",
  "supports-loading-mode",
  "timing-allow-origin",
  "use-as-dictionary",
  "x-dns-prefetch-control",
  "x-frame-options",
  "x-permitted-cross-domain-policies",
  "x-sourcemap",
  "x-xss-protection",
]);

/** This service decides which other origins may read a response, and how its own origin is isolated. */
const DROPPED_PREFIXES = ["access-control-", "attribution-reporting-", "cross-origin-", "sec-"];

/** For these schemes a browser asks its user for a password, or sends the credentials of the system account. */
const DIALOG_SCHEME = /(?:^|[\s,])(?:basic|digest|negotiate|ntlm)(?:$|[\s,])/i;

/** Relations that a client follows on its own decision. Other relations may make a browser fetch the link. */
const LINK_RELATION =
  /^(?:next|prev|previous|first|last|self|up|item|collection|canonical|alternate|help|describedby|deprecation|sunset|service-doc|service-desc|status|terms-of-service|license|latest-version|successor-version)$/i;

/** `inspect`: the value decides. */
type Verdict = "pass" | "drop" | "inspect";

/** Header names repeat from response to response, so each is judged once. Bounded, because providers choose them. */
const verdicts = new Map<string, Verdict>();
const MAX_VERDICTS = 1000;

/** Returns a flat list for `writeHead`. The provider's `x-request-id` is kept: its support needs it to find the call. */
export function toClientHeaders(head: ResponseHead, marks: ResponseMarks): string[] {
  const headers: string[] = [];
  const { rawHeaders, status } = head;
  const named = connectionNames(rawHeaders);
  // RFC 9110, section 8.6: these responses have no body, and a client that trusts the length would wait for one.
  const isBodiless = status === 204 || status === 304;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    const verdict = verdicts.get(name) ?? judge(name);
    if (verdict === "drop" || (verdict === "inspect" && !isHarmless(name.toLowerCase(), value))) continue;
    if (named?.has(name.toLowerCase()) === true) continue;
    if (isBodiless && name.toLowerCase() === "content-length") continue;
    headers.push(name, value);
  }
  headers.push("gw-aig-request-id", marks.id);
  if (marks.isLogged) headers.push("gw-aig-log-id", marks.id);
  if (marks.cacheStatus !== null) headers.push("gw-aig-cache-status", marks.cacheStatus);
  // Clients of the hosted original choose by its name for the header which of their models reads the answer.
  if (marks.step !== null) headers.push("gw-aig-step", String(marks.step), "cf-aig-step", String(marks.step));
  if (marks.translation !== null) headers.push(...marks.translation.responseHeaders);
  if (marks.errorOrigin !== null) headers.push("gw-aig-error-origin", marks.errorOrigin);
  return headers;
}

/** Adds what a route has decided. */
export function addRouteHeaders(
  headers: string[],
  { routeHeaders, showsModel }: Pick<CallPlan, "routeHeaders" | "showsModel">,
  { provider, model }: Pick<Step, "provider" | "model">,
): void {
  if (routeHeaders !== undefined) headers.push(...routeHeaders);
  if (showsModel !== true) return;
  const name = `${provider.slug}/${model}`;
  if (HEADER_TEXT.test(name)) headers.push("gw-aig-routed-model", name);
}

interface SpendMarks {
  /** Null in trailers, which repeat nothing of the head. */
  readonly provider: string | null;
  readonly model: string | null;
  readonly overheadMs: number | null;
  /** Null while they are not known. */
  readonly spend: CallSpend | null;
  /** Of the tightest budget; null when the call has none. */
  readonly remaining: Remaining | null;
}

/** Callers choose the name of the model; one that is no header value is left out. */
const HEADER_TEXT = /^[\x21-\x7e]{1,256}$/;

/** Adds to `headers` who answered, what it used and cost, and what is left: name, value, name, value, … */
export function addSpendHeaders(
  headers: string[],
  { provider, model, overheadMs, spend, remaining }: SpendMarks,
): void {
  if (provider !== null) headers.push("gw-aig-provider", provider);
  if (model !== null && HEADER_TEXT.test(model)) headers.push("gw-aig-model", model);
  if (overheadMs !== null) headers.push("gw-aig-overhead-ms", String(Math.round(overheadMs * 100) / 100));
  if (spend !== null) {
    const { state, usage, cost } = spend;
    if (cost !== null) headers.push("gw-aig-cost", toDollars(cost));
    if (state === "reported" || state === "estimated") {
      headers.push("gw-aig-tokens-in", String(usage.tokensIn), "gw-aig-tokens-out", String(usage.tokensOut));
    }
  }
  if (remaining !== null) {
    headers.push("gw-aig-budget-remaining", toDollars(remaining.amount));
    if (remaining.resetAt !== null) {
      headers.push("gw-aig-budget-reset", toIsoTime(remaining.resetAt));
    }
  }
}

/** To the billionth, without an exponent, which not every client parses. */
function toDollars(amount: number): string {
  const text = String(Math.round(amount * 1e9) / 1e9);
  return text.includes("e") ? amount.toFixed(9).replace(/\.?0+$/, "") : text;
}

let lastTime = Number.NaN;
let lastIsoTime = "";

/** Budgets end at the same time for many calls. */
function toIsoTime(time: number): string {
  if (time !== lastTime) {
    lastIsoTime = new Date(time).toISOString();
    lastTime = time;
  }
  return lastIsoTime;
}

function judge(raw: string): Verdict {
  const name = raw.toLowerCase();
  let verdict: Verdict = "pass";
  if (name === "link" || name === "www-authenticate") verdict = "inspect";
  else if (
    DROPPED.has(name) ||
    // A provider must not set headers of the gateway.
    gatewayHeaderName(name) !== null ||
    affectsOrigin(name) ||
    DROPPED_PREFIXES.some((prefix) => name.startsWith(prefix))
  ) {
    verdict = "drop";
  }
  if (verdicts.size < MAX_VERDICTS) verdicts.set(raw, verdict);
  return verdict;
}

function isHarmless(name: string, value: string): boolean {
  if (name === "www-authenticate") return !DIALOG_SCHEME.test(value);
  const relations = [...value.matchAll(/;\s*rel\s*=\s*(?:"([^"]*)"|([^\s;,]*))/gi)];
  return (
    relations.length > 0 &&
    relations.every(([, quoted, plain]) =>
      (quoted ?? plain ?? "")
        .trim()
        .split(/\s+/)
        .every((relation) => LINK_RELATION.test(relation)),
    )
  );
}

function connectionNames(rawHeaders: readonly string[]): ReadonlySet<string> | null {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    if (name.length !== 10 || name.toLowerCase() !== "connection") continue;
    const value = rawHeaders[i + 1]?.toLowerCase() ?? "";
    if (value !== "keep-alive" && value !== "close") {
      return new Set(value.split(",").map((one) => one.trim()));
    }
  }
  return null;
}
