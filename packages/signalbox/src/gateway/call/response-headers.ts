/**
 * A provider's response headers as the client gets them, plus what the gateway says about the call.
 *
 * Left out: what belongs to the provider's own connection, what only the gateway may say, and what speaks to a browser for this origin
 * (`affectsOrigin` and the list below): a provider is a stranger here, and its answer leaves from the dashboard's address.
 */
import { affectsOrigin } from "../../http/foreign-answer.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import { gatewayHeaderName } from "./call-options.ts";

export interface ResponseMarks {
  readonly logId: string | null;
  readonly cacheStatus: "HIT" | "MISS" | null;
  readonly step: number | null;
  readonly errorOrigin: "gateway" | "provider" | null;
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
  // Cookies of this origin, which a client would send to every provider and to the dashboard.
  "set-cookie",
  "set-cookie2",
  // Instructions to a browser about a document; no client of an API reads them.
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

/** Whether other sites' pages may read an answer is for this service to decide; so is everything that isolates the origin. */
const DROPPED_PREFIXES = ["access-control-", "attribution-reporting-", "cross-origin-", "sec-"];

/** A browser asks its user for a password, or sends the user's system credentials, when it sees these. */
const DIALOG_SCHEME = /(?:^|[\s,])(?:basic|digest|negotiate|ntlm)(?:$|[\s,])/i;

/** Relations that tell a client where to read on. Every other one may make a browser fetch something. */
const LINK_RELATION =
  /^(?:next|prev|previous|first|last|self|up|item|collection|canonical|alternate|help|describedby|deprecation|sunset|service-doc|service-desc|status|terms-of-service|license|latest-version|successor-version)$/i;

type Verdict = "pass" | "drop" | "look";

/** Header names repeat from answer to answer; each is judged once. Bounded, because providers choose them. */
const verdicts = new Map<string, Verdict>();
const MAX_VERDICTS = 1000;

/** Flat list for `writeHead`. A provider's own `x-request-id` stays: it is the one its support asks for. */
export function toClientHeaders(head: ResponseHead, marks: ResponseMarks): string[] {
  const headers: string[] = [];
  const { rawHeaders, status } = head;
  const named = connectionNames(rawHeaders);
  // RFC 9110, section 8.6: such answers have no body, and a client that believes the length waits for one.
  const isBodiless = status === 204 || status === 304;
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? "";
    const value = rawHeaders[i + 1] ?? "";
    const verdict = verdicts.get(name) ?? judge(name);
    if (verdict === "drop" || (verdict === "look" && !isHarmless(name.toLowerCase(), value))) continue;
    if (named?.has(name.toLowerCase()) === true) continue;
    if (isBodiless && name.toLowerCase() === "content-length") continue;
    headers.push(name, value);
  }
  if (marks.logId !== null) headers.push("gw-aig-log-id", marks.logId);
  if (marks.cacheStatus !== null) headers.push("gw-aig-cache-status", marks.cacheStatus);
  if (marks.step !== null) headers.push("gw-aig-step", String(marks.step));
  if (marks.errorOrigin !== null) headers.push("gw-aig-error-origin", marks.errorOrigin);
  return headers;
}

function judge(raw: string): Verdict {
  const name = raw.toLowerCase();
  let verdict: Verdict = "pass";
  if (name === "link" || name === "www-authenticate") verdict = "look";
  else if (
    DROPPED.has(name) ||
    // Only the gateway speaks for the gateway: a provider must not be able to claim its marks.
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
