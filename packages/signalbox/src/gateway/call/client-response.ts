/**
 * The response of a call as its client gets it.
 *
 * What a call cost is known at its end. A JSON response is useless before it is complete, so its head waits for it, up to a size, and states
 * the cost. The head of a stream leaves at once; its cost follows in trailers, if the client asked for trailers (RFC 9110, section 6.5.1).
 */
import { SignalboxError } from "@signalbox/protocol";
import type { HttpRequest } from "../../engines/http-server/index.ts";
import type { ResponseHead } from "../../engines/relay/index.ts";
import type { CallSpend } from "../limits/call-spend.ts";
import type { Step } from "../step/step.ts";
import type { CallStart } from "./call-start.ts";
import { addRouteHeaders, addSpendHeaders, toClientHeaders } from "./response-headers.ts";

const TRAILER_NAMES =
  "gw-aig-cost, gw-aig-tokens-in, gw-aig-tokens-out, gw-aig-budget-remaining, gw-aig-budget-reset";
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

  /** Writes what is held; `spend` is null while the response is not complete. An error as of `open`. */
  release(spend: CallSpend | null): SignalboxError | null {
    const held = this.#held ?? [];
    this.#held = null;
    const error = this.#writeHead(spend);
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

  /** Ends the response, possibly with an empty chunk. `spend` goes into trailers, if the head announced any. */
  end(chunk: Buffer, spend: CallSpend | null): void {
    const { response } = this.#start;
    if (this.#hasTrailers && spend !== null) this.#addTrailers(spend);
    if (chunk.length > 0) response.end(chunk);
    else response.end();
  }

  #addTrailers(spend: CallSpend): void {
    const { response, account } = this.#start;
    const remaining = account?.remaining(this.#step) ?? null;
    const headers: string[] = [];
    addSpendHeaders(headers, { provider: null, model: null, overheadMs: null, spend, remaining });
    const trailers: [string, string][] = [];
    for (let i = 0; i + 1 < headers.length; i += 2) trailers.push([headers[i] ?? "", headers[i + 1] ?? ""]);
    response.addTrailers(trailers);
  }

  #writeHead(spend: CallSpend | null): SignalboxError | null {
    const { id, logDetail, response, request, cacheStatus, showsStep, account } = this.#start;
    const head = this.#head;
    const step = this.#step;
    const headers = toClientHeaders(head, {
      cacheStatus,
      id,
      isLogged: logDetail !== "none",
      step: showsStep ? this.#place : null,
      errorOrigin: head.status >= 400 ? "provider" : null,
      translation: step.translation,
    });
    addRouteHeaders(headers, this.#start, step);
    if (this.#start.guard !== undefined) headers.push(...this.#start.guard.headers);
    addSpendHeaders(headers, {
      provider: step.provider.slug,
      model: spend?.model ?? step.model,
      overheadMs: this.#overheadMs,
      spend,
      remaining: account?.remaining(step) ?? null,
    });
    this.#hasTrailers = spend === null && acceptsTrailers(request, head);
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
