/**
 * Closes WebSockets that may not connect. The handshake is completed first, because a client can read the close code only then.
 *
 * Invariants:
 * 1. Nothing that a refused peer sends causes an uncaught error: every `error` event has a listener.
 * 2. A refused peer keeps its socket for at most `CLOSE_TIMEOUT_MS`, whatever it sends or does not read.
 * 3. At most `MAX_CLOSING` refused sockets are open; another one terminates the oldest.
 * See agents/README.md.
 */
import { type HttpRequest, toIncomingMessage } from "../../engines/http-server/index.ts";
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { type ServerOptions, WebSocketServer } from "ws";
import { MAX_REASON_BYTES } from "../../engines/http-server/index.ts";

/** A few round trips on a slow connection: for the close frame and the peer's answer. */
const CLOSE_TIMEOUT_MS = 1000;
/** Each takes about ten kilobytes. */
const MAX_CLOSING = 256;
/** The protocol versions of `ws`. */
const VERSIONS: readonly string[] = ["13", "8"];
/** A refused peer needs to send no message; its close frame is a control frame. */
const MAX_MESSAGE_BYTES = 1024;

export class RefusedSockets {
  readonly #server = createDoorServer(MAX_MESSAGE_BYTES, CLOSE_TIMEOUT_MS);
  /** In order of refusal. */
  readonly #closing = new Set<Duplex>();

  refuse(request: HttpRequest, socket: Duplex, head: Buffer, code: number, reason: string): void {
    this.#server.handleUpgrade(toIncomingMessage(request), socket, head, (webSocket) => {
      // `ws` closes the connection itself after a protocol error; without a listener the error would be uncaught.
      webSocket.on("error", () => undefined);
      this.#closing.add(socket);
      socket.once("close", () => this.#closing.delete(socket));
      webSocket.close(code, Buffer.byteLength(reason) > MAX_REASON_BYTES ? "" : reason);
      if (this.#closing.size > MAX_CLOSING) this.#terminateOldest();
    });
  }

  #terminateOldest(): void {
    const oldest = this.#closing.values().next();
    if (oldest.done) return;
    this.#closing.delete(oldest.value);
    oldest.value.destroy();
  }
}

/**
 * A WebSocket server without a listener of its own. It terminates a peer `closeTimeoutMs` after the first close frame. Its `handleUpgrade` throws
 * for a request that is not a handshake, so that the request is answered like every other refused request.
 */
export function createDoorServer(maxPayload: number, closeTimeoutMs: number): WebSocketServer {
  // The types of `ws` lack `closeTimeout`.
  const options: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    // Compression takes about 300 KiB of memory per socket and much CPU time; frames are small.
    perMessageDeflate: false,
    maxPayload,
    closeTimeout: closeTimeoutMs,
  };
  const server = new WebSocketServer(options);
  // Without a listener `ws` sends a response of its own. The event is emitted synchronously by `handleUpgrade`.
  server.on("wsClientError", ({ message }, _socket, { method, headers }) => {
    if (method !== "GET") throw new SignalboxError("method_not_allowed", { headers: { allow: "GET" } });
    const isKnown = VERSIONS.includes(headers["sec-websocket-version"] ?? "");
    // RFC 6455, section 4.4: the response to another version lists the supported ones.
    const versions: Record<string, string> = isKnown ? {} : { "sec-websocket-version": VERSIONS.join(", ") };
    throw new SignalboxError("malformed_http", { message, headers: versions });
  });
  return server;
}
