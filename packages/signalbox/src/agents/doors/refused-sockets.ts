/**
 * Says goodbye to WebSockets that may not connect: the handshake is completed, because only then can a close code be read, and the socket is
 * closed with it. Refused peers are strangers, so what they send afterwards is trusted with nothing.
 *
 * Invariants:
 * 1. No byte that a refused peer sends reaches the process as an error: every `error` event has a listener.
 * 2. A refused peer holds its socket for at most `GOODBYE_MS`, whatever it sends or does not read.
 * 3. At most `MAX_LEAVING` refused sockets are open; one more cuts the oldest of them.
 */
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type ServerOptions, WebSocketServer } from "ws";
import { MAX_REASON_BYTES } from "../connections/live-connection.ts";

/** Time for the close frame to reach the peer and for the peer's own to come back: some round trips of a bad line. */
const GOODBYE_MS = 1000;
/** Some ten kilobytes each. */
const MAX_LEAVING = 256;
/** A peer that is being refused has nothing to say; its own close frame is a control frame and no message. */
const MAX_MESSAGE_BYTES = 1024;

export class RefusedSockets {
  readonly #server = new WebSocketServer(doorServerOptions(MAX_MESSAGE_BYTES, GOODBYE_MS));
  /** In the order in which they were refused. */
  readonly #leaving = new Set<Duplex>();

  refuse(request: IncomingMessage, socket: Duplex, head: Buffer, code: number, reason: string): void {
    this.#server.handleUpgrade(request, socket, head, (webSocket) => {
      // `ws` ends the connection by itself after a protocol error; without a listener the error would end the process.
      webSocket.on("error", () => undefined);
      this.#leaving.add(socket);
      socket.once("close", () => this.#leaving.delete(socket));
      webSocket.close(code, Buffer.byteLength(reason) > MAX_REASON_BYTES ? "" : reason);
      if (this.#leaving.size > MAX_LEAVING) this.#cutOldest();
    });
  }

  #cutOldest(): void {
    const oldest = this.#leaving.values().next();
    if (oldest.done) return;
    this.#leaving.delete(oldest.value);
    oldest.value.destroy();
  }
}

/** For a server without a listener of its own, that cuts a peer `closeTimeoutMs` after the first close frame between the two. */
export function doorServerOptions(maxPayload: number, closeTimeoutMs: number): ServerOptions {
  // The types of `ws` do not know `closeTimeout` yet.
  const options: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    // Compression costs some 300 KiB of memory a socket and a lot of time; frames here are small.
    perMessageDeflate: false,
    maxPayload,
    closeTimeout: closeTimeoutMs,
  };
  return options;
}
