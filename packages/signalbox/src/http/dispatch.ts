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
  type ErrorDialect,
  rawErrorResponse,
  renderError,
  sendError,
  toSignalboxError,
} from "./render-error.ts";
import { RequestContext } from "./request-context.ts";
import { decodeSegment, splitTarget } from "./request-target.ts";

const CALLER_REQUEST_ID = /^[\w.-]{1,128}$/;

export class Dispatcher {
  readonly #areas = new Map<string, Area>();
  readonly #metrics: HttpMetrics;
  readonly #logger: Logger;
  readonly #idPrefix = `${randomBytes(6).toString("hex")}-`;
  #idCounter = 0;

  constructor(areas: readonly Area[], metrics: HttpMetrics, logger: Logger) {
    this.#metrics = metrics;
    this.#logger = logger;
    for (const area of areas) {
      for (const segment of area.segments) {
        if (this.#areas.has(segment)) throw new Error(`two areas claim /${segment}`);
        this.#areas.set(segment, area);
      }
    }
  }

  readonly request = (request: IncomingMessage, response: ServerResponse): void => {
    const id = this.requestId(request);
    response.setHeader("x-request-id", id);
    const startedAt = performance.now();
    let area: Area | undefined;
    // `close` and not `finish`: a client that left early is counted too.
    response.once("close", () => this.#measure(area, request, response, startedAt));
    try {
      const target = splitTarget(request.url ?? "/");
      area = this.#areaOf(target.path);
      if (area === undefined) throw new SignalboxError("not_found");
      const pending = area.handle(request, response, new RequestContext(id, target, request));
      if (pending instanceof Promise)
        pending.catch((error: unknown) => this.#fail(response, area, id, error));
    } catch (error) {
      this.#fail(response, area, id, error);
    }
  };

  readonly upgrade = (request: IncomingMessage, socket: Duplex, head: Buffer): void => {
    const id = this.requestId(request);
    let area: Area | undefined;
    socket.on("error", () => socket.destroy());
    const refuse = (error: unknown) => {
      socket.end(rawErrorResponse(this.#explain(error, id), area?.dialect ?? "envelope", id));
    };
    try {
      const target = splitTarget(request.url ?? "/");
      area = this.#areaOf(target.path);
      if (area?.upgrade === undefined) throw new SignalboxError("not_found");
      const pending = area.upgrade(request, socket, head, new RequestContext(id, target, request));
      if (pending instanceof Promise) pending.catch(refuse);
    } catch (error) {
      refuse(error);
    }
  };

  /** The caller's id when it is harmless to repeat, so that traces through several services line up; else our own. */
  requestId(request?: IncomingMessage): string {
    const given = request?.headers["x-request-id"];
    if (typeof given === "string" && CALLER_REQUEST_ID.test(given)) return given;
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

  #measure(
    area: Area | undefined,
    request: IncomingMessage,
    response: ServerResponse,
    startedAt: number,
  ): void {
    const name = area?.name ?? "none";
    // The parser lets through only methods it knows, so the label has few values.
    this.#metrics.requests.inc({ area: name, method: request.method ?? "", status: response.statusCode });
    this.#metrics.durations.observe({ area: name }, (performance.now() - startedAt) / 1000);
  }
}
