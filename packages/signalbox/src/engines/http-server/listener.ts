/**
 * The one TCP listener. It enforces the limits that protect every area (header size and time, body time, idle time, connections) and
 * stops without cutting answers short.
 *
 * Life cycle: created → listening → draining → closed.
 *   listening → draining: `drain()`; no new connections, answers carry `connection: close`, idle connections are closed.
 *   draining → closed: every connection ended, or the grace period passed and the rest are cut.
 */
import type { IncomingMessage, Server } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Duplex } from "node:stream";
import { SignalboxError } from "@signalbox/protocol";
import { createServer } from "./node-http.ts";
import type { HttpMetrics } from "../../telemetry/metrics.ts";
import { whenAnswered } from "./answers-in-order.ts";
import type { Dispatcher } from "../../http/dispatch.ts";
import type { BoundAddress } from "../../http/listen-address.ts";
import { rawErrorResponse } from "../../http/render-error.ts";
import { TrackedRequest } from "./tracked-request.ts";
import { TrackedResponse } from "./tracked-response.ts";

export interface ListenerLimits {
  readonly maxHeaderBytes: number;
  /** From the connection's first byte to the end of the headers. */
  readonly headerTimeoutMs: number;
  /** From the first byte to the end of the request body. */
  readonly bodyTimeoutMs: number;
  /** How long a connection may stay open between two requests. */
  readonly idleTimeoutMs: number;
  readonly maxConnections: number;
}

/** How often node checks the two request timeouts; they hold to within this. */
const TIMEOUT_CHECK_MS = 1000;

export class Listener {
  readonly #server: Server<typeof TrackedRequest, typeof TrackedResponse>;
  readonly #dispatcher: Dispatcher;
  readonly #metrics: HttpMetrics;
  #closed: Promise<void> = Promise.resolve();
  /** Connections whose bytes were no HTTP: the refusal waits for earlier answers. */
  readonly #refused = new WeakSet<Socket>();

  constructor(dispatcher: Dispatcher, limits: ListenerLimits, metrics: HttpMetrics) {
    this.#dispatcher = dispatcher;
    this.#metrics = metrics;
    this.#server = createServer({
      IncomingMessage: TrackedRequest,
      ServerResponse: TrackedResponse,
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headerTimeoutMs,
      requestTimeout: limits.bodyTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: Math.min(TIMEOUT_CHECK_MS, limits.headerTimeoutMs),
      // Node would answer a missing one by itself, with nothing but a status; the dispatch refuses it, and a second one.
      requireHostHeader: false,
      // Any other protocol is an offer that a server is free to ignore (RFC 9110, section 7.8); clients that make it expect an ordinary answer.
      shouldUpgradeCallback: (request) => request.headers.upgrade?.toLowerCase() === "websocket",
    });
    this.#server.maxConnections = limits.maxConnections;
    this.#server.on("request", dispatcher.request);
    // Node takes its own listeners off a connection that it hands over, while earlier answers may still be due on it.
    const handedOver = (socket: Duplex, task: () => void) => {
      socket.on("error", () => socket.destroy());
      whenAnswered(socket, task);
    };
    this.#server.on("upgrade", (request, socket, head) =>
      handedOver(socket, () => dispatcher.upgrade(request, socket, head)),
    );
    // Without a listener node would close CONNECT and `Expect` oddities silently; they deserve an answer.
    this.#server.on("connect", (request, socket) =>
      handedOver(socket, () => this.#refuse(socket, new SignalboxError("method_not_allowed"), request)),
    );
    this.#server.on("checkExpectation", (request, response) =>
      dispatcher.refuse(request, response, new SignalboxError("expectation_failed")),
    );
    // The go-ahead goes out when somebody begins to read the body: a caller that its headers alone refuse never sends it.
    this.#server.on("checkContinue", (request, response) => {
      request.once("resume", () => {
        if (!response.headersSent) response.writeContinue();
      });
      dispatcher.request(request, response);
    });
    this.#server.on("clientError", (error, socket) => this.#onClientError(error, socket as Socket));
    this.#server.on("connection", (socket) => {
      metrics.connections.inc();
      socket.once("close", () => metrics.connections.dec());
    });
  }

  /** Resolves with the bound address once connections are accepted. */
  listen(host: string, port: number): Promise<BoundAddress> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        const bound = this.#server.address() as AddressInfo;
        resolve({ host, address: bound.address, port: bound.port });
      });
    });
  }

  /** Stops accepting; running requests go on. */
  drain(): void {
    this.#dispatcher.drain();
    // For answers whose headers have left already: their connection ends as soon as it is idle.
    this.#server.keepAliveTimeout = 1;
    this.#server.keepAliveTimeoutBuffer = 0;
    this.#closed = new Promise((resolve) => this.#server.close(() => resolve()));
    this.#server.closeIdleConnections();
  }

  /** Waits for what runs, at most `graceMs`, then cuts the rest. */
  async close(graceMs: number): Promise<void> {
    const cut = setTimeout(() => this.#server.closeAllConnections(), graceMs);
    await this.#closed;
    clearTimeout(cut);
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    // Node reports again for every read that follows.
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    this.#metrics.malformed.inc();
    whenAnswered(socket, () => this.#refuse(socket, toListenerError(error)));
  }

  #refuse(
    socket: NodeJS.WritableStream & { destroy(): void },
    error: SignalboxError,
    request?: IncomingMessage,
  ): void {
    socket.on("error", () => socket.destroy());
    socket.end(rawErrorResponse(error, "envelope", this.#dispatcher.requestId(request)));
  }
}

function toListenerError(error: NodeJS.ErrnoException): SignalboxError {
  if (error.code === "HPE_HEADER_OVERFLOW") return new SignalboxError("headers_too_large");
  if (error.code === "ERR_HTTP_REQUEST_TIMEOUT") return new SignalboxError("request_timeout");
  return new SignalboxError("malformed_http");
}
