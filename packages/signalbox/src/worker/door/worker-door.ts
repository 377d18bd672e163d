/**
 * The worker as an area: it answers every path that no area of the server owns, and the paths below `/agents` that name no agent of this package.
 *
 * The order of work: event paths of the operator → static files → the worker's `fetch`.
 */
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { overloaded } from "../../core/overload.ts";
import type { Share } from "../../core/shared-pool.ts";
import type { HttpRequest, HttpResponse } from "../../engines/http-server/index.ts";
import type { Area, FallbackArea } from "../../http/area.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { decodeSegment } from "../../http/request-target.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { Assets } from "../assets/assets.ts";
import type { WorkerRuntime } from "../program/worker-runtime.ts";
import { type RequestOptions, toWorkerRequest } from "./worker-request.ts";
import { sendWorkerResponse } from "./worker-response.ts";
import type { WorkerSockets } from "./worker-sockets.ts";

export interface WorkerDoorParts extends RequestOptions {
  readonly logger: Logger;
  readonly runtime: WorkerRuntime;
  /** Null: the worker has no static files. */
  readonly assets: Assets | null;
  readonly sockets: WorkerSockets;
  /** Who the callers are is known to the program only: together they hold what callers without a token may hold. */
  readonly place: Share;
  /** True for an agent of this package, by its name in URLs. */
  isNative(agent: string): boolean;
  /** First path segments of the server that the worker takes over. */
  readonly takenSegments: ReadonlySet<string>;
  /** The paths that start events; they require a token. */
  readonly events: Pick<Area, "handle"> & { owns(path: string): boolean };
}

/** Bodies of unread requests up to this size are skipped; after a larger one the connection is closed. */
const SKIPPED_BODY_BYTES = 64 * 1024;

export class WorkerDoor implements FallbackArea {
  readonly name = "worker";
  readonly segments = [];
  readonly dialect = "envelope";
  readonly #parts: WorkerDoorParts;

  constructor(parts: WorkerDoorParts) {
    this.#parts = parts;
  }

  /** True for a path of another area that belongs to the worker. */
  takes(segment: string, path: string): boolean {
    // The start page is the worker's; the server's own only points to the dashboard.
    if (segment === "" || this.#parts.takenSegments.has(segment)) return true;
    if (segment !== "agents") return false;
    const [, , agent = ""] = path.split("/", 3);
    return !this.#parts.isNative(decodeSegment(agent));
  }

  async handle(request: HttpRequest, response: HttpResponse, context: RequestContext): Promise<void> {
    const { events } = this.#parts;
    if (events.owns(context.path)) {
      await events.handle(request, response, context);
      return;
    }
    if (!context.memory.occupy(this.#parts.place)) throw overloaded();
    const gone = new AbortController();
    response.once("close", () => {
      if (!response.writableFinished) gone.abort(new Error("the client disconnected"));
    });
    const answer = await this.#answer(toWorkerRequest(request, context, this.#parts, gone.signal));
    if (answer.status === 101)
      throw new SignalboxError("worker_failed", {
        message: "The worker answered 101 to a request without Upgrade",
      });
    if (!request.complete && !isSmall(request)) response.shouldKeepAlive = false;
    try {
      await sendWorkerResponse(answer, response, request.method === "HEAD");
    } catch (err) {
      if (!gone.signal.aborted)
        this.#parts.logger.warn({ err, requestId: context.id }, "a body of the worker failed");
    } finally {
      // A body that the program did not read is skipped, so that the connection can be used again.
      if (!request.complete && !request.body.destroyed) request.body.resume();
    }
  }

  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    if (!this.#parts.place.takeUntilClosed(socket)) throw overloaded();
    const gone = new AbortController();
    const abort = () => gone.abort(new Error("the client disconnected"));
    // A program may never answer. A client that ends its side now has left; the connection itself stays open for writing.
    const leave = () => socket.destroy();
    socket.once("close", abort);
    socket.once("end", leave);
    let answer: Response;
    try {
      answer = await this.#answer(toWorkerRequest(request, context, this.#parts, gone.signal));
    } finally {
      socket.off("close", abort);
      socket.off("end", leave);
    }
    await this.#parts.sockets.answer(answer, request, socket, head);
  }

  async #answer(request: Request): Promise<Response> {
    const { runtime, assets } = this.#parts;
    const file = (await assets?.answer(request)) ?? null;
    return file ?? runtime.fetch(request);
  }
}

function isSmall({ headers }: HttpRequest): boolean {
  const length = headers["content-length"];
  return length !== undefined && Number(length) <= SKIPPED_BODY_BYTES;
}
