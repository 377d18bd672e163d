/**
 * Builds the response headers for the client: those of the provider, and those that the gateway adds about the call.
 *
 * Dropped are headers of the provider's connection, headers that only the gateway may set, and headers that instruct a browser about this
 * origin (`affectsOrigin` and the list below): the provider is not trusted, and its response comes from the dashboard's origin.
 *
 * What a call cost is known at its end. A JSON response is useless before it is complete, so its head waits for it, up to a size, and states
 * the cost. The head of a stream leaves at once; its cost follows in trailers, if the client asked for trailers (RFC 9110, section 6.5.1).
 */
import { SignalboxError } from "@signalbox/protocol";
import type { HttpRequest } from "../../engines/http-server/index.ts";
import { affectsOrigin } from "../../http/foreign-answer.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import type { CallFigures } from "../limits/call-figures.ts";
import type { Remaining } from "../limits/limit-rule.ts";
import { gatewayHeaderName } from "../step/call-options.ts";
import type { Translation } from "../step/translation.ts";
import type { Step } from "../step/step.ts";
import type { CallStart } from "./call-start.ts";

export interface ResponseMarks {
  readonly logId: string | null;
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
  if (marks.logId !== null) headers.push("gw-aig-log-id", marks.logId);
  if (marks.cacheStatus !== null) headers.push("gw-aig-cache-status", marks.cacheStatus);
  // Clients of the hosted original choose by its name for the header which of their models reads the answer.
  if (marks.step !== null) headers.push("gw-aig-step", String(marks.step), "cf-aig-step", String(marks.step));
  if (marks.translation !== null) headers.push(...marks.translation.responseHeaders);
  if (marks.errorOrigin !== null) headers.push("gw-aig-error-origin", marks.errorOrigin);
  return headers;
}

export interface FigureMarks {
  /** Null in trailers, which repeat nothing of the head. */
  readonly provider: string | null;
  readonly model: string | null;
  readonly overheadMs: number | null;
  /** Null while they are not known. */
  readonly figures: CallFigures | null;
  /** Of the tightest budget; null when the call has none. */
  readonly remaining: Remaining | null;
}

const TRAILER_NAMES =
  "gw-aig-cost, gw-aig-tokens-in, gw-aig-tokens-out, gw-aig-budget-remaining, gw-aig-budget-reset";
/** Callers choose the name of the model; one that is no header value is left out. */
const HEADER_TEXT = /^[\x21-\x7e]{1,256}$/;

/** Adds to `headers` who answered, what it used and cost, and what is left: name, value, name, value, … */
export function addFigureHeaders(
  headers: string[],
  { provider, model, overheadMs, figures, remaining }: FigureMarks,
): void {
  if (provider !== null) headers.push("gw-aig-provider", provider);
  if (model !== null && HEADER_TEXT.test(model)) headers.push("gw-aig-model", model);
  if (overheadMs !== null) headers.push("gw-aig-overhead-ms", String(Math.round(overheadMs * 100) / 100));
  if (figures !== null) {
    const { state, usage, cost } = figures;
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

/** A larger response is passed on as it arrives. */
const MAX_HELD_BYTES = 64 * 1024;

export class ClientResponse {
  readonly #start: CallStart;
  readonly #head: ResponseHead;
  readonly #step: Step;
  readonly #place: number;
  readonly #overheadMs: number;
  /** What is held of the body; null when the head has been written. */
  #held: Buffer[] | null = null;
  #heldBytes = 0;
  #hasTrailers = false;
  #waitsForDrain = false;

  /** `place` is the index of the step that answers. */
  constructor(start: CallStart, head: ResponseHead, step: Step, place: number, overheadMs: number) {
    this.#start = start;
    this.#head = head;
    this.#step = step;
    this.#place = place;
    this.#overheadMs = overheadMs;
  }

  get isHeld(): boolean {
    return this.#held !== null;
  }

  /** Writes the head, or holds it. An error for header names and values that HTTP does not allow. */
  open(): SignalboxError | null {
    if (!isWholeJson(this.#head, this.#step)) return this.#writeHead(null);
    this.#held = [];
    return null;
  }

  /** True when the chunk must wait for the rest of the response. */
  holds(chunk: Buffer, isLast: boolean): boolean {
    if (this.#held === null || isLast || this.#heldBytes + chunk.length > MAX_HELD_BYTES) return false;
    this.#heldBytes += chunk.length;
    if (chunk.length > 0) this.#held.push(chunk);
    return true;
  }

  /** Writes what is held; `figures` is null while the response is not complete. An error as of `open`. */
  release(figures: CallFigures | null): SignalboxError | null {
    const held = this.#held ?? [];
    this.#held = null;
    const error = this.#writeHead(figures);
    if (error === null) for (const part of held) this.#start.response.write(part);
    return error;
  }

  /** While the client's socket is full, `source` is paused. */
  write(chunk: Buffer, source: { pause(): void; resume(): void } | null): void {
    const { response } = this.#start;
    if (response.write(chunk) || this.#waitsForDrain) return;
    this.#waitsForDrain = true;
    source?.pause();
    response.once("drain", () => {
      this.#waitsForDrain = false;
      source?.resume();
    });
  }

  /** Ends the response, possibly with an empty chunk. `figures` become trailers, if the head announced any. */
  end(chunk: Buffer, figures: CallFigures | null): void {
    const { response } = this.#start;
    if (this.#hasTrailers && figures !== null) this.#addTrailers(figures);
    if (chunk.length > 0) response.end(chunk);
    else response.end();
  }

  #addTrailers(figures: CallFigures): void {
    const { response, account } = this.#start;
    const remaining = account?.remaining(this.#step) ?? null;
    const headers: string[] = [];
    addFigureHeaders(headers, { provider: null, model: null, overheadMs: null, figures, remaining });
    const trailers: [string, string][] = [];
    for (let i = 0; i + 1 < headers.length; i += 2) trailers.push([headers[i] ?? "", headers[i + 1] ?? ""]);
    response.addTrailers(trailers);
  }

  #writeHead(figures: CallFigures | null): SignalboxError | null {
    const { id, logDetail, response, request, routeHeaders, cacheStatus, showsStep, account } = this.#start;
    const head = this.#head;
    const step = this.#step;
    const headers = toClientHeaders(head, {
      cacheStatus,
      logId: logDetail === "none" ? null : id,
      step: showsStep ? this.#place : null,
      errorOrigin: head.status >= 400 ? "provider" : null,
      translation: step.translation,
    });
    if (routeHeaders !== undefined) headers.push(...routeHeaders);
    addFigureHeaders(headers, {
      provider: step.provider.slug,
      model: figures?.model ?? step.model,
      overheadMs: this.#overheadMs,
      figures,
      remaining: account?.remaining(step) ?? null,
    });
    this.#hasTrailers = figures === null && acceptsTrailers(request, head);
    if (this.#hasTrailers) headers.push("trailer", TRAILER_NAMES);
    try {
      response.writeHead(head.status, headers);
      return null;
    } catch (cause) {
      // Node refuses header names and values that HTTP does not allow; they could change the structure of the response.
      return new SignalboxError("gateway_provider_unreachable", {
        message: "Provider sent invalid headers",
        cause,
      });
    }
  }
}

/** JSON that a client can only use whole. Gemini streams an array as JSON. */
function isWholeJson({ contentType, status }: ResponseHead, { requestType, upstream }: Step): boolean {
  if (status === 204 || status === 304 || upstream.method === "HEAD") return false;
  return (
    requestType !== "" && requestType !== "generate_content" && contentType.startsWith("application/json")
  );
}

/** A response with a length has no trailers, and HTTP/1.0 has none. */
function acceptsTrailers(request: HttpRequest, head: ResponseHead): boolean {
  const { te } = request.headers;
  if (typeof te !== "string" || request.httpVersionMinor === 0) return false;
  if (!/(?:^|,)\s*trailers\s*(?:,|;|$)/i.test(te) || head.status === 204 || head.status === 304) return false;
  return !head.rawHeaders.some((name, i) => i % 2 === 0 && name.toLowerCase() === "content-length");
}
