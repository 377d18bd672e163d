/**
 * One TCP listener for HTTP/1.1, or HTTPS if it has a certificate. It enforces the limits that protect every area (header size and time, body time, idle time, connections,
 * pipelined requests) and stops without truncating responses.
 *
 * Life cycle: created → listening (→ retired) → draining → closed.
 *   listening → retired: `retire()`; requests (and connections) are accepted, and responses carry `connection: close`.
 *   listening → draining: `drain()`; no new connections, responses carry `connection: close`, idle connections are closed.
 *   draining → closed: every connection has ended, or the grace period has passed and the rest are cut.
 * See README.md.
 */
import type { Server, ServerOptions } from "node:http";
import { type AddressInfo, Server as NetServer, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import { whenAnswered } from "./answer-order.ts";
import { ConnectionRoom } from "./connection-room.ts";
import { sendFinalAnswer } from "./final-answer.ts";
import type { HttpApplication, ListenerEngine, ListenerLimits, ListenerRefusal } from "./application.ts";
import type { HttpRequest } from "./http-exchange.ts";
import type { BoundAddress } from "./listen-address.ts";
import { NodeConnections } from "./node-connections.ts";
import { createSecureServer, createServer } from "./node-http.ts";
import { PlainConnections } from "./plain-connections.ts";
import type { ServerCertificate } from "./server-certificate.ts";
import { TlsHandshakes } from "./tls-handshakes.ts";
import { TrackedRequest } from "./tracked-request.ts";
import { TrackedResponse } from "./tracked-response.ts";
import { type ListenerState, MAX_UNANSWERED, Tracking } from "./tracking.ts";

/** Interval at which Node.js checks the request timeouts. */
const TIMEOUT_CHECK_MS = 1000;
export class Listener {
  readonly #server: Server<typeof TrackedRequest, typeof TrackedResponse>;
  readonly #application: HttpApplication;
  readonly #state: ListenerState = { isDraining: false };
  readonly #onResponseClose: (this: TrackedResponse) => void;
  readonly #isTls: boolean;
  #closed: Promise<void> = Promise.resolve();
  /** All open connections, also those that node:http has handed over and no longer knows. */
  readonly #sockets = new Set<Socket>();
  /** Connections that sent malformed bytes: the refusal waits for earlier responses, and Node reports each further read. */
  readonly #refused = new WeakSet<Socket>();
  /** Connections that are not at node:http; null if all are. */
  readonly #plain: PlainConnections | null;
  readonly #atNode = new NodeConnections();
  readonly #room: ConnectionRoom;

  /** `certificate`: null for plain HTTP. */
  constructor(
    application: HttpApplication,
    limits: ListenerLimits,
    certificate: ServerCertificate | null = null,
    engine: ListenerEngine = "own",
  ) {
    this.#application = application;
    this.#isTls = certificate !== null;
    const atNode = this.#atNode;
    // One function for all responses, instead of a closure for each.
    this.#onResponseClose = function onResponseClose(this: TrackedResponse) {
      const { tracking } = this;
      if (tracking === undefined) return;
      tracking.release();
      atNode.answered(tracking.pipeline);
      application.ended(this, tracking);
    };
    const sweepMs = Math.min(TIMEOUT_CHECK_MS, limits.headerTimeoutMs);
    const options = {
      IncomingMessage: TrackedRequest,
      ServerResponse: TrackedResponse,
      maxHeaderSize: limits.maxHeaderBytes,
      headersTimeout: limits.headerTimeoutMs,
      requestTimeout: limits.bodyTimeoutMs,
      keepAliveTimeout: limits.idleTimeoutMs,
      connectionsCheckingInterval: sweepMs,
      // Node would answer a missing Host header with a bare status; the application refuses it, and a second one.
      requireHostHeader: false,
      // A server may ignore the offer of any other protocol (RFC 9110, section 7.8); the request then gets an ordinary response.
      shouldUpgradeCallback: (request: HttpRequest) => request.headers.upgrade?.toLowerCase() === "websocket",
    };
    this.#server =
      certificate === null ? createServer(options) : this.#createSecure(options, certificate, limits);
    this.#server.maxConnections = limits.maxConnections;
    const connected = this.#isTls ? "secureConnection" : "connection";
    const handshakes = this.#isTls ? new TlsHandshakes(this.#server) : null;
    this.#plain = engine === "own" ? this.#parsePlain(connected, limits, sweepMs) : null;
    if (engine === "node") this.#server.on(connected, (socket: Socket) => this.#atNode.add(socket));
    this.#room = new ConnectionRoom(limits.maxConnections, () => [
      ...(handshakes?.all() ?? []),
      ...(this.#plain?.all() ?? []),
      ...this.#atNode.all(),
    ]);
    // With several processes: a connection above the limit is closed, as with one, and not offered to the other processes for ever.
    // The types of Node do not know the property.
    Object.assign(this.#server, { dropMaxConnection: true });
    this.#listenToRequests();
    this.#listenToConnections();
  }

  /** Resolves with the bound address once connections are accepted. */
  listen(host: string, port: number): Promise<BoundAddress> {
    return new Promise((resolve, reject) => {
      this.#server.once("error", reject);
      this.#server.listen(port, host, () => {
        this.#server.off("error", reject);
        const bound = this.#server.address() as AddressInfo;
        resolve({ host, address: bound.address, port: bound.port, isTls: this.#isTls });
      });
    });
  }

  /** Still accepts requests, and connections unless another process accepts them; each response closes its connection. */
  retire(acceptsConnections = true): void {
    this.#state.isDraining = true;
    if (!acceptsConnections) this.#stopAccepting();
  }

  /** Stops accepting connections; running requests continue. */
  drain(): void {
    this.#state.isDraining = true;
    // For responses whose headers have been sent: their connection is closed as soon as it is idle.
    this.#server.keepAliveTimeout = 1;
    this.#server.keepAliveTimeoutBuffer = 0;
    this.#stopAccepting();
    // Closes idle connections.
    this.#server.close();
    this.#plain?.drain();
  }

  #stopAccepting(): void {
    if (!this.#server.listening) return;
    // Not `close` of node:http, which also closes idle connections: on one of them a request may be on its way.
    this.#closed = new Promise((resolve) => NetServer.prototype.close.call(this.#server, () => resolve()));
  }

  /** Waits for running requests, at most `graceMs`, then cuts the remaining connections. */
  async close(graceMs: number): Promise<void> {
    const cut = setTimeout(() => {
      for (const socket of this.#sockets) socket.destroy();
    }, graceMs);
    await this.#closed;
    clearTimeout(cut);
  }

  /** A handshake that does not end has the time limit of headers, which begin after it. */
  #createSecure(
    options: ServerOptions<typeof TrackedRequest, typeof TrackedResponse>,
    certificate: ServerCertificate,
    limits: ListenerLimits,
  ): Server<typeof TrackedRequest, typeof TrackedResponse> {
    const server = createSecureServer({
      ...options,
      ...certificate.options,
      handshakeTimeout: limits.headerTimeoutMs,
    });
    certificate.onChange((changed) => server.setSecureContext(changed));
    // Node's own listener reports the failure as `clientError`, too: it would count twice, and be answered in HTTP.
    server.removeAllListeners("tlsClientError");
    // Scanners, plain HTTP and old versions of TLS: the connection is closed, and counted as bytes that are not HTTP.
    server.on("tlsClientError", (_error, socket) => {
      this.#application.malformed();
      socket.destroy();
    });
    return server;
  }

  /**
   * Takes the place of the one function with which node:http listens for connections. Node documents that a server takes any connection that
   * is passed to this function, by an event of this name.
   */
  #parsePlain(event: string, limits: ListenerLimits, sweepMs: number): PlainConnections {
    const server = this.#server;
    const attach = server.listeners(event) as ((socket: Socket) => void)[];
    const plain = new PlainConnections(this.#application, this.#state, limits, sweepMs, (socket) => {
      this.#atNode.add(socket);
      for (const listener of attach) listener.call(server, socket);
    });
    server.removeAllListeners(event);
    server.on(event, (socket: Socket) => plain.accept(socket));
    return plain;
  }

  #listenToRequests(): void {
    const application = this.#application;
    const handle = (request: TrackedRequest, response: TrackedResponse) => {
      const tracking = this.#track(request, response);
      if (tracking !== null) application.handle(request, response, tracking);
    };
    this.#server.on("request", handle);
    // `100 Continue` is sent when the body is first read: a client that is refused by its headers never sends the body.
    this.#server.on("checkContinue", (request, response) => {
      request.once("resume", () => {
        if (!response.headersSent) response.writeContinue();
      });
      handle(request, response);
    });
    this.#server.on("checkExpectation", (request, response) => {
      const tracking = this.#track(request, response);
      if (tracking === null) return;
      response.shouldKeepAlive = false;
      application.refuse("expectation_failed", response, tracking);
    });
  }

  #listenToConnections(): void {
    const application = this.#application;
    // Node removes its own listeners from a connection that it hands over, while earlier responses may still be due on it.
    const handOver = (socket: Duplex, task: () => void) => {
      this.#atNode.leave(socket as Socket);
      socket.on("error", () => socket.destroy());
      whenAnswered(socket, task);
    };
    this.#server.on("upgrade", (request, socket, head) =>
      handOver(socket, () => application.upgrade(request, socket, head)),
    );
    // Without a listener Node closes the connection of a CONNECT without a response.
    this.#server.on("connect", (request, socket) =>
      handOver(socket, () => this.#refuse(socket, "method_not_allowed", request)),
    );
    this.#server.on("clientError", (error, socket) => this.#onClientError(error, socket as Socket));
    this.#server.on("drop", () => this.#room.arrived(null, this.#sockets.size));
    this.#server.on("connection", (socket) => {
      application.connection(1);
      this.#sockets.add(socket);
      this.#room.arrived(socket, this.#sockets.size);
      socket.once("close", () => {
        this.#sockets.delete(socket);
        application.connection(-1);
      });
    });
  }

  /** Returns null if the connection is closing, or had too many unanswered requests and was closed. */
  #track(request: TrackedRequest, response: TrackedResponse): Tracking | null {
    const { socket } = request;
    const pipeline = this.#atNode.began(request);
    // The client knows from the response before that it has to send the request on another connection.
    if (pipeline.isClosing) return null;
    if (pipeline.unanswered >= MAX_UNANSWERED) {
      socket.destroy();
      return null;
    }
    pipeline.unanswered += 1;
    const tracking = new Tracking(this.#application.requestId(request), this.#state, pipeline);
    pipeline.latest = tracking;
    response.tracking = tracking;
    // `close` instead of `finish`: it is also emitted if the client disconnected.
    response.on("close", this.#onResponseClose);
    return tracking;
  }

  #onClientError(error: NodeJS.ErrnoException, socket: Socket): void {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    if (this.#refused.has(socket)) return;
    this.#refused.add(socket);
    this.#application.malformed();
    whenAnswered(socket, () => this.#refuse(socket, toRefusal(error)));
  }

  #refuse(socket: Duplex, refusal: ListenerRefusal, request?: HttpRequest): void {
    sendFinalAnswer(socket, this.#application.refusalText(refusal, request));
  }
}

function toRefusal({ code }: NodeJS.ErrnoException): ListenerRefusal {
  if (code === "HPE_HEADER_OVERFLOW") return "headers_too_large";
  return code === "ERR_HTTP_REQUEST_TIMEOUT" ? "too_slow" : "malformed";
}
