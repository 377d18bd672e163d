/**
 * The application of a listener: passes each request to the area that owns the first path segment, and sends errors in the format of the area.
 */
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { type ErrorName, SignalboxError } from "@signalbox/protocol";
import {
  HeldMemory,
  type HttpApplication,
  type HttpRequest,
  type ListenerRefusal,
  sendFinalAnswer,
  type ServedResponse,
  type Tracking,
} from "../engines/http-server/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { HttpMetrics } from "../telemetry/metrics.ts";
import type { Area, FallbackArea, PlaceAtHost } from "./area.ts";
import { INERT_HEADER_LIST, INERT_HEADERS } from "./foreign-answer.ts";
import {
  type ErrorDialect,
  rawErrorResponse,
  renderError,
  sendError,
  toSignalboxError,
} from "./render-error.ts";
import { RequestContext } from "./request-context.ts";
import { decodeSegment, type RequestTarget, settleHost, splitTarget } from "./request-target.ts";

const CALLER_REQUEST_ID = /^[\w.-]{1,128}$/;
const INERT = { record: INERT_HEADERS, list: INERT_HEADER_LIST };

const REFUSAL_ERRORS: Readonly<Record<ListenerRefusal, ErrorName>> = {
  malformed: "malformed_http",
  headers_too_large: "headers_too_large",
  too_slow: "request_timeout",
  method_not_allowed: "method_not_allowed",
  expectation_failed: "expectation_failed",
};

/**
 * Called before a request is handled. Null if it may be handled at once; otherwise it may when the promise resolves, and is refused if the promise
 * rejects.
 */
export type AdmitRequest = () => Promise<void> | null;

export class Dispatcher implements HttpApplication {
  readonly #areas = new Map<string, Area>();
  readonly #fallback: FallbackArea | null;
  /** Areas that own some paths below a segment. */
  readonly #guests = new Map<string, { readonly area: Area; readonly path: RegExp }>();
  readonly #metrics: HttpMetrics;
  readonly #logger: Logger;
  readonly #admit: AdmitRequest | null;
  readonly #placeAtHost: PlaceAtHost | null;
  readonly #idPrefix = `${randomBytes(6).toString("hex")}-`;
  #idCounter = 0;

  constructor(
    areas: readonly Area[],
    metrics: HttpMetrics,
    logger: Logger,
    fallback: FallbackArea | null = null,
    admit: AdmitRequest | null = null,
    placeAtHost: PlaceAtHost | null = null,
  ) {
    this.#placeAtHost = placeAtHost;
    this.#fallback = fallback;
    this.#admit = admit;
    this.#metrics = metrics;
    this.#logger = logger;
    for (const area of areas) {
      for (const segment of area.segments) {
        if (this.#areas.has(segment)) throw new Error(`two areas have the path segment /${segment}`);
        this.#areas.set(segment, area);
      }
      for (const segment of area.guest?.segments ?? []) {
        if (area.guest !== undefined) this.#guests.set(segment, { area, path: area.guest.path });
      }
    }
  }

  handle(request: HttpRequest, response: ServedResponse, tracking: Tracking): void {
    const id = tracking.requestId;
    let area: Area | undefined;
    let context: RequestContext | undefined;
    try {
      if (request.httpVersionMajor < 1) {
        hideMethod(request);
        throw new SignalboxError("malformed_http");
      }
      settleHost(request);
      const target = this.#targetOf(request);
      area = this.#areaOf(target.path);
      if (area === undefined) throw new SignalboxError("not_found");
      tracking.area = area.name;
      if (area.isForeign === true) tracking.added = area.headersFor?.(request) ?? INERT;
      const own = (context = new RequestContext(id, target, request, tracking));
      const waiting = this.#admission(area, target.path);
      const pending =
        waiting === null
          ? area.handle(request, response, own)
          : waiting.then(() => area?.handle(request, response, own));
      if (pending instanceof Promise)
        pending.catch((error: unknown) => this.#fail(response, own.errorDialect ?? area?.dialect, id, error));
    } catch (error) {
      this.#fail(response, context?.errorDialect ?? area?.dialect, id, error);
    }
  }

  upgrade(request: HttpRequest, socket: Duplex, head: Buffer): void {
    const id = this.requestId(request);
    let area: Area | undefined;
    socket.on("error", () => socket.destroy());
    const refuse = (error: unknown) =>
      sendFinalAnswer(socket, rawErrorResponse(this.#explain(error, id), area?.dialect ?? "envelope", id));
    try {
      settleHost(request);
      const target = this.#targetOf(request);
      area = this.#areaOf(target.path);
      if (area?.upgrade === undefined) throw new SignalboxError("not_found");
      const context = new RequestContext(id, target, request, new HeldMemory());
      const waiting = this.#admission(area, target.path);
      const pending =
        waiting === null
          ? area.upgrade(request, socket, head, context)
          : waiting.then(() => area?.upgrade?.(request, socket, head, context));
      if (pending instanceof Promise) pending.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  }

  refuse(refusal: ListenerRefusal, response: ServedResponse, tracking: Tracking): void {
    // The path may belong to any area.
    tracking.added = INERT;
    this.#fail(response, "envelope", tracking.requestId, new SignalboxError(REFUSAL_ERRORS[refusal]));
  }

  refusalText(refusal: ListenerRefusal, request?: HttpRequest): string {
    return rawErrorResponse(new SignalboxError(REFUSAL_ERRORS[refusal]), "envelope", this.requestId(request));
  }

  ended(response: ServedResponse, { area, startedAt }: Tracking): void {
    // The parser accepts only methods it knows, so the label has few values.
    this.#metrics.requests.add(1, area, response.req.method ?? "", response.statusCode);
    this.#metrics.durations.observe((performance.now() - startedAt) / 1000, area);
  }

  connection(change: 1 | -1): void {
    this.#metrics.connections.inc(change);
  }

  malformed(): void {
    this.#metrics.malformed.add(1);
  }

  /** Returns the `x-request-id` of the request if it is safe to repeat, otherwise a new id. */
  requestId(request?: HttpRequest): string {
    const given = request === undefined ? undefined : findHeader(request.rawHeaders, "x-request-id");
    if (given !== undefined && CALLER_REQUEST_ID.test(given)) return given;
    this.#idCounter += 1;
    return this.#idPrefix + this.#idCounter.toString(36);
  }

  /** Null if the request may be handled at once. */
  #admission(area: Area, path: string): Promise<void> | null {
    return this.#admit === null || area.isAlwaysServed?.(path) === true ? null : this.#admit();
  }

  #targetOf(request: HttpRequest): RequestTarget {
    const target = splitTarget(request.url ?? "/");
    const path = this.#placeAtHost?.(request.headers.host ?? "", target.path) ?? null;
    return path === null ? target : { ...target, path };
  }

  #areaOf(path: string): Area | undefined {
    const end = path.indexOf("/", 1);
    const segment = decodeSegment(end === -1 ? path.slice(1) : path.slice(1, end));
    const guest = this.#guests.get(segment);
    const area = guest?.path.test(path) === true ? guest.area : this.#areas.get(segment);
    const fallback = this.#fallback;
    if (fallback === null) return area;
    return area === undefined || fallback.takes(segment, path) ? fallback : area;
  }

  #fail(response: ServedResponse, dialect: ErrorDialect | undefined, id: string, error: unknown): void {
    sendError(response, renderError(this.#explain(error, id), dialect ?? "envelope", id));
  }

  #explain(error: unknown, requestId: string): SignalboxError {
    const known = toSignalboxError(error);
    if (known.id === "internal")
      this.#logger.error({ err: known.cause ?? known, requestId }, "request failed");
    return known;
  }
}

/**
 * A request line without a version is HTTP/0.9 and is refused. Node.js accepts it; if the method is `PRI` (the preface of HTTP/2), Node.js would
 * later close the connection before pending responses are sent.
 */
function hideMethod(request: HttpRequest): void {
  request.method = "GET";
}

/** Reads the raw list: creating the header object of Node.js for one header would cost more than the rest of the dispatch. */
function findHeader(rawHeaders: readonly string[], name: string): string | undefined {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
