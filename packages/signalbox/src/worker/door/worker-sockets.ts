/**
 * Answers to upgrade requests: a response with status 101 and a WebSocket joins it to the client's socket, any other response is sent as HTTP.
 */
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import type { WebSocket } from "ws";
import { createDoorServer } from "../../agents/index.ts";
import {
  type HttpRequest,
  relayStream,
  sendFinalAnswer,
  STATUS_CODES,
  toIncomingMessage,
} from "../../engines/http-server/index.ts";
import { toHeadList } from "./worker-response.ts";

export interface WorkerSocketParts {
  readonly maxMessageBytes: number;
  /** Joins the WebSocket of a response to the one of the client; `socket` is the connection below it. */
  join(webSocket: object, client: WebSocket, socket: Duplex): void;
}

/** How long a peer may take to answer the close frame, including the data buffered before it. */
const CLOSE_TIMEOUT_MS = 5000;
/** Headers of the handshake, which `ws` writes. */
const HANDSHAKE: ReadonlySet<string> = new Set([
  "sec-websocket-accept",
  "sec-websocket-protocol",
  "sec-websocket-extensions",
]);

export class WorkerSockets {
  readonly #parts: WorkerSocketParts;

  constructor(parts: WorkerSocketParts) {
    this.#parts = parts;
  }

  async answer(response: Response, request: HttpRequest, socket: Duplex, head: Buffer): Promise<void> {
    const { webSocket } = response as Response & { readonly webSocket?: object | null };
    if (response.status !== 101) await sendResponse(response, socket);
    else if (webSocket === null || webSocket === undefined)
      throw new SignalboxError("worker_failed", { message: "The worker answered 101 without a webSocket" });
    else this.#join(response, webSocket, request, socket, head);
  }

  #join(response: Response, webSocket: object, request: HttpRequest, socket: Duplex, head: Buffer): void {
    const server = createDoorServer(this.#parts.maxMessageBytes, CLOSE_TIMEOUT_MS);
    const protocol = response.headers.get("sec-websocket-protocol");
    // One server for each handshake: the program picks the protocol and the headers of this one.
    server.options.handleProtocols = () => protocol ?? false;
    server.on("headers", (lines) => {
      const list = toHeadList(response);
      for (let i = 0; i + 1 < list.length; i += 2)
        if (!HANDSHAKE.has(list[i] ?? "")) lines.push(`${list[i]}: ${list[i + 1]}`);
    });
    server.handleUpgrade(toIncomingMessage(request), socket, head, (client) =>
      this.#parts.join(webSocket, client, socket),
    );
  }
}

/** Sends a response on a socket without a response object. It is the last of the connection, which ends with its body. */
async function sendResponse(response: Response, socket: Duplex): Promise<void> {
  const list = toHeadList(response);
  const lines = [
    `HTTP/1.1 ${response.status} ${response.statusText || (STATUS_CODES[response.status] ?? "")}`,
  ];
  for (let i = 0; i + 1 < list.length; i += 2) lines.push(`${list[i]}: ${list[i + 1]}`);
  // Who has asked for a WebSocket has nothing to send to a response, and has left when its side ends. The body may be endless.
  socket.once("end", () => socket.destroy());
  socket.resume();
  socket.write([...lines, "connection: close", "", ""].join("\r\n"), "latin1");
  if (response.body !== null) await relayStream(response.body, socket, null);
  sendFinalAnswer(socket, "");
}
