/**
 * From a raw request to the area that owns its first path segment, and from whatever goes wrong there to an answer in that area's
 * dialect. The only code every request runs through, so it stays short.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { randomBytes } from "node:crypto";
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { Logger } from "../telemetry/logger.ts";
import type { HttpMetrics } from "../telemetry/metrics.ts";
import type { Area } from "./area.ts";
import {
  HeldMemory,
  type ListenerState,
  MAX_UNANSWERED,
  pipelineOf,
  type TrackedResponse,
  Tracking,
} from "../engines/http-server/index.ts";
import {
  type ErrorDialect,
  rawErrorResponse,
  renderError,
  sendError,
  toSignalboxError,
} from "./render-error.ts";
import { RequestContext } from "./request-context.ts";
import { settleHost } from "./request-host.ts";
import { decodeSegment, splitTarget } from "./request-target.ts";

const CALLER_REQUEST_ID = /^[\w.-]{1,128}$/;

export class Dispatcher {
  readonly #areas = new Map<string, Area>();
  readonly #measure: (this: TrackedResponse) => void;
  readonly #listener: ListenerState = { isDraining: false };
  readonly #logger: Logger;
  readonly #idPrefix = `${randomBytes(6).toString("hex")}-`;
  #idCounter = 0;

  constructor(areas: readonly Area[], metrics: HttpMetrics, logger: Logger) {
    this.#logger = logger;
    this.#measure = function measure(this: TrackedResponse) {
      if (this.tracking === undefined) return;
      const { area, startedAt } = this.tracking;
      const seconds = (performance.now() - startedAt) / 1000;
      // The parser lets through only methods it knows, so the label has few values.
      metrics.requests.observe(area, this.req.method ?? "", this.statusCode, seconds);
      this.tracking.release();
      this.tracking.pipeline.unanswered -= 1;
    };
    for (const area of areas) {
      for (const segment of area.segments) {
        if (this.#areas.has(segment)) throw new Error(`two areas claim /${segment}`);
        this.#areas.set(segment, area);
      }
    }
  }

  readonly request = (request: IncomingMessage, response: TrackedResponse): void => {
    const id = this.requestId(request);
    const tracking = this.#track(id, request, response);
    if (tracking === null) return;
    let area: Area | undefined;
    try {
      if (request.httpVersionMajor < 1) {
        hideMethod(request);
        throw new SignalboxError("malformed_http");
      }
      settleHost(request);
      const target = splitTarget(request.url ?? "/");
      area = this.#areaOf(target.path);
      if (area === undefined) throw new SignalboxError("not_found");
      tracking.area = area.name;
      tracking.isForeign = area.isForeign === true;
      const pending = area.handle(request, response, new RequestContext(id, target, request, tracking));
      if (pending instanceof Promise)
        pending.catch((error: unknown) => this.#fail(response, area, id, error));
    } catch (error) {
      this.#fail(response, area, id, error);
    }
  };

  /** Answers a request with an error before any area has seen it; its body is not read. */
  refuse(request: IncomingMessage, response: TrackedResponse, error: SignalboxError): void {
    const id = this.requestId(request);
    const tracking = this.#track(id, request, response);
    if (tracking === null) return;
    // Whichever area the path belongs to.
    tracking.isForeign = true;
    response.shouldKeepAlive = false;
    this.#fail(response, undefined, id, error);
  }

  /** Null when the client has been sending requests without reading their answers: then its connection is cut. */
  #track(id: string, request: IncomingMessage, response: TrackedResponse): Tracking | null {
    const pipeline = pipelineOf(request.socket);
    if (pipeline.unanswered >= MAX_UNANSWERED) {
      request.socket.destroy();
      return null;
    }
    pipeline.unanswered += 1;
    const tracking = new Tracking(id, this.#listener, pipeline);
    response.tracking = tracking;
    // `close` and not `finish`: a client that left early is counted too. One shared listener, no closure per request.
    response.on("close", this.#measure);
    return tracking;
  }

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const id = this.requestId(request);
    let area: Area | undefined;
    socket.on("error", () => socket.destroy());
    const refuse = (error: unknown) => {
      socket.end(rawErrorResponse(this.#explain(error, id), area?.dialect ?? "envelope", id));
    };
    try {
      settleHost(request);
      const target = splitTarget(request.url ?? "/");
      area = this.#areaOf(target.path);
      if (area?.upgrade === undefined) throw new SignalboxError("not_found");
      const context = new RequestContext(id, target, request, new HeldMemory());
      const pending = area.upgrade(request, socket, head, context);
      if (pending instanceof Promise) pending.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  };

  /** From now on every answer, also to requests that are running, tells its client that the connection ends with it. */
  drain(): void {
    this.#listener.isDraining = true;
  }

  /** The caller's id when it is harmless to repeat, so that traces through several services line up; else our own. */
  requestId(request?: IncomingMessage): string {
    const given = request === undefined ? undefined : findHeader(request.rawHeaders, "x-request-id");
    if (given !== undefined && CALLER_REQUEST_ID.test(given)) return given;
    this.#idCounter += 1;
    return this.#idPrefix + this.#idCounter.toString(36);
  }

  #areaOf(path: string): Area | undefined {
    const end = path.indexOf("/", 1);
    return this.#areas.get(decodeSegment(end === -1 ? path.slice(1) : path.slice(1, end)));
  }

  #fail(response: ServerResponse, area: Area | undefined, id: string, error: unknown): void {
    const dialect: ErrorDialect = area?.dialect ?? "envelope";
    sendError(response, renderError(this.#explain(error, id), dialect, id));
  }

  #explain(error: unknown, requestId: string): SignalboxError {
    const known = toSignalboxError(error);
    if (known.id === "internal")
      this.#logger.error({ err: known.cause ?? known, requestId }, "request failed");
    return known;
  }
}

/**
 * For a request line without a version: HTTP/0.9, which knows neither headers nor statuses, so whoever sends it could not read an answer and
 * is refused. Node takes it, and afterwards cuts the connection, with the answers that are still due on it, if the method is `PRI` (the
 * preface of HTTP/2).
 */
function hideMethod(request: IncomingMessage): void {
  request.method = "GET";
}

/** Looks in the raw list: building node's header object for one rare header would cost more than the whole dispatch. */
function findHeader(rawHeaders: readonly string[], name: string): string | undefined {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const candidate = rawHeaders[i];
    if (candidate?.length === name.length && candidate.toLowerCase() === name) return rawHeaders[i + 1];
  }
  return undefined;
}
