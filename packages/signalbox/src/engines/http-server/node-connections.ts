/** The connections that node:http reads, and the requests of each that have no complete response. */
import type { Socket } from "node:net";
import { isSlow, type OpenConnection } from "./connection-room.ts";
import type { HttpRequest } from "./http-exchange.ts";
import type { Pipeline, Tracking } from "./tracking.ts";

class NodePipeline implements Pipeline {
  unanswered = 0;
  latest: Tracking | null = null;
  isClosing = false;
  /** When the connection was opened, the last request began, or all were answered. */
  since = performance.now();
  /** The request that was received last, until it is answered. */
  request: HttpRequest | null = null;
  /** What the connection had received when it began. */
  bytesBefore = 0;
}

export class NodeConnections {
  readonly #pipelines = new Map<Socket, NodePipeline>();

  /** Returns the same object for the same connection. */
  add(socket: Socket): NodePipeline {
    const known = this.#pipelines.get(socket);
    if (known !== undefined) return known;
    const pipeline = new NodePipeline();
    // Its `close` may have been emitted: nothing would remove it.
    if (socket.destroyed) return pipeline;
    this.#pipelines.set(socket, pipeline);
    socket.once("close", () => this.#pipelines.delete(socket));
    return pipeline;
  }

  /** A request has arrived, its body perhaps not. */
  began(request: HttpRequest & { readonly socket: Socket }): Pipeline {
    const pipeline = this.add(request.socket);
    pipeline.request = request;
    pipeline.bytesBefore = request.socket.bytesRead;
    pipeline.since = performance.now();
    return pipeline;
  }

  answered(pipeline: Pipeline): void {
    if (!(pipeline instanceof NodePipeline)) return;
    pipeline.unanswered -= 1;
    if (pipeline.unanswered > 0) return;
    pipeline.request = null;
    pipeline.since = performance.now();
  }

  /** The connection speaks another protocol from now on, or its last bytes are on their way. */
  leave(socket: Socket): void {
    this.#pipelines.delete(socket);
  }

  all(): OpenConnection[] {
    const now = performance.now();
    return [...this.#pipelines].map(([socket, { unanswered, request, bytesBefore, since }]) => {
      const isArriving = unanswered === 1 && request?.complete === false;
      const isWaiting =
        unanswered === 0 || (isArriving && isSlow(socket.bytesRead - bytesBefore, now - since));
      return { socket, waitingSince: isWaiting ? since : null };
    });
  }
}
