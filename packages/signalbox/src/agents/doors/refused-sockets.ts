/**
 * Says goodbye to WebSockets that may not connect: the handshake is completed, because only then can a close code be read, and the socket is
 * closed with it. Refused peers are strangers, so what they send afterwards is trusted with nothing.
 *
 * Invariants:
 * 1. No byte that a refused peer sends reaches the process as an error: every `error` event has a listener.
 * 2. A refused peer holds its socket for at most `GOODBYE_MS`, whatever it sends or does not read.
 * 3. At most `MAX_LEAVING` refused sockets are open; one more cuts the oldest of them.
 */
import { type HttpRequest, toIncomingMessage } from "../../engines/http-server/index.ts";
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { type ServerOptions, WebSocketServer } from "ws";
import { MAX_REASON_BYTES } from "../connections/live-connection.ts";

/** Time for the close frame to reach the peer and for the peer's own to come back: some round trips of a bad line. */
const GOODBYE_MS = 1000;
/** Some ten kilobytes each. */
const MAX_LEAVING = 256;
/** Those that `ws` speaks. */
const VERSIONS: readonly string[] = ["13", "8"];
/** A peer that is being refused has nothing to say; its own close frame is a control frame and no message. */
const MAX_MESSAGE_BYTES = 1024;

export class RefusedSockets {
  readonly #server = createDoorServer(MAX_MESSAGE_BYTES, GOODBYE_MS);
  /** In the order in which they were refused. */
  readonly #leaving = new Set<Duplex>();

  refuse(request: HttpRequest, socket: Duplex, head: Buffer, code: number, reason: string): void {
    this.#server.handleUpgrade(toIncomingMessage(request), socket, head, (webSocket) => {
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

/**
 * A server without a listener of its own, that cuts a peer `closeTimeoutMs` after the first close frame between the two. Its `handleUpgrade`
 * throws for a request that is no handshake, so that it is answered like every other request that is refused.
 */
export function createDoorServer(maxPayload: number, closeTimeoutMs: number): WebSocketServer {
  // The types of `ws` do not know `closeTimeout` yet.
  const options: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    // Compression costs some 300 KiB of memory a socket and a lot of time; frames here are small.
    perMessageDeflate: false,
    maxPayload,
    closeTimeout: closeTimeoutMs,
  };
  const server = new WebSocketServer(options);
  // Without a listener `ws` answers by itself, with a page of text. The event is emitted inside of `handleUpgrade`.
  server.on("wsClientError", ({ message }, _socket, { method, headers }) => {
    if (method !== "GET") throw new SignalboxError("method_not_allowed", { headers: { allow: "GET" } });
    const isKnown = VERSIONS.includes(headers["sec-websocket-version"] ?? "");
    // RFC 6455, section 4.4: a peer of another version is told which ones there are.
    const versions = isKnown ? {} : { "sec-websocket-version": VERSIONS.join(", ") };
    throw new SignalboxError("malformed_http", { message, headers: versions });
  });
  return server;
}
