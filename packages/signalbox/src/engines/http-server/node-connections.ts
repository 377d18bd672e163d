/** The connections that node:http reads, and the requests of each that have no complete response. */
import type { Socket } from "node:net";
import type { Pipeline, WaitingConnection } from "./tracking.ts";

export class NodeConnections {
  readonly #pipelines = new Map<Socket, Pipeline>();

  /** Returns the same object for the same connection. */
  add(socket: Socket): Pipeline {
    const known = this.#pipelines.get(socket);
    if (known !== undefined) return known;
    const pipeline = { unanswered: 0, latest: null, isClosing: false, since: performance.now() };
    // Its `close` may have been emitted: nothing would remove it.
    if (socket.destroyed) return pipeline;
    this.#pipelines.set(socket, pipeline);
    socket.once("close", () => this.#pipelines.delete(socket));
    return pipeline;
  }

  /** The connection speaks another protocol from now on, or its last bytes are on their way. */
  leave(socket: Socket): void {
    this.#pipelines.delete(socket);
  }

  waiting(): WaitingConnection[] {
    const waiting: WaitingConnection[] = [];
    for (const [socket, { unanswered, since }] of this.#pipelines)
      if (unanswered === 0) waiting.push({ socket, since });
    return waiting;
  }
}
