/**
 * WebSockets on `/agents/{agent}/{name}[/…]`. A connection that is refused is accepted first and then closed with a final code: a browser
 * cannot see the status of a failed handshake, and stock clients would try again for ever.
 */
import { randomUUID } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Duplex } from "node:stream";
import { type RawData, type WebSocket, WebSocketServer } from "ws";
import type { RequestContext } from "../../http/request-context.ts";
import { closeCodeOf, toSignalboxError } from "../../http/render-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { findAccess, withoutToken } from "./access.ts";
import { type AgentTarget, type DoorOptions, findTarget } from "./http-door.ts";
import { LiveConnection } from "../connections/live-connection.ts";
import { closed, connect, receive } from "../connections/connection-turns.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import { toWebRequest } from "./web-request.ts";

/** Messages of one connection that may wait for their turns; then the socket is not read until some have ended. */
const MAX_UNANSWERED = 256;
const MAX_ID_LENGTH = 128;

export class WebSocketDoor {
  readonly #options: DoorOptions;
  readonly #hub: SocketHub;
  readonly #logger: Logger;
  readonly #server: WebSocketServer;

  constructor(options: DoorOptions, hub: SocketHub, logger: Logger) {
    this.#options = options;
    this.#hub = hub;
    this.#logger = logger;
    this.#server = new WebSocketServer({
      noServer: true,
      clientTracking: false,
      // Compression costs some 300 KiB of memory a socket and a lot of time; frames here are small.
      perMessageDeflate: false,
      maxPayload: options.maxMessageBytes,
    });
  }

  async upgrade(
    request: IncomingMessage,
    socket: Duplex,
    head: Buffer,
    context: RequestContext,
  ): Promise<void> {
    let target: AgentTarget;
    let isReadonly: boolean;
    try {
      isReadonly = (await findAccess(this.#options.access, request, context.query)) === "read";
      target = findTarget(this.#options.definitions, context);
    } catch (error) {
      this.#refuse(request, socket, head, error);
      return;
    }
    this.#server.handleUpgrade(request, socket, head, (webSocket) =>
      this.#accept(request, socket, webSocket, context, target, isReadonly),
    );
  }

  #refuse(request: IncomingMessage, socket: Duplex, head: Buffer, error: unknown): void {
    const known = toSignalboxError(error);
    if (known.id === "internal") this.#logger.error({ err: known.cause ?? known }, "upgrade failed");
    const { code, reason } = closeCodeOf(known);
    this.#server.handleUpgrade(request, socket, head, (webSocket) => webSocket.close(code, reason));
  }

  #accept(
    request: IncomingMessage,
    socket: Duplex,
    webSocket: WebSocket,
    context: RequestContext,
    { definition, name }: AgentTarget,
    isReadonly: boolean,
  ): void {
    const query = new URLSearchParams(context.query);
    const uri = withoutToken(request.url ?? "/");
    const givenId = query.get("_pk") ?? "";
    const id = givenId === "" || givenId.length > MAX_ID_LENGTH ? randomUUID() : givenId;
    const group = this.#hub.group(`${definition.kebab}/${name}`);
    const connection = new LiveConnection(group, id, uri, webSocket, socket, isReadonly);
    this.#hub.add(group, connection);

    let unanswered = 0;
    const answered = () => {
      unanswered -= 1;
      if (unanswered === MAX_UNANSWERED / 2) connection.resume();
    };
    const fail = (error: unknown) => {
      const { code, reason } = closeCodeOf(toSignalboxError(error));
      connection.closeNow(code, reason);
    };
    const instance = () => this.#options.directory.get(definition, name);

    webSocket.on("pong", () => {
      connection.isAlive = true;
    });
    // `ws` closes the socket itself after a protocol error; the listener keeps the error from being fatal.
    webSocket.on("error", () => undefined);
    webSocket.on("message", (data: RawData, isBinary: boolean) => {
      if (connection.isClosed) return;
      connection.isAlive = true;
      unanswered += 1;
      if (unanswered === MAX_UNANSWERED) connection.pause();
      const message = isBinary ? (data as Buffer) : (data as Buffer).toString("utf8");
      receive(instance, connection, message).then(answered, answered);
    });
    webSocket.on("close", (code: number, reason: Buffer) => {
      connection.markClosed();
      group.leave(connection);
      this.#hub.remove(group, connection);
      // A turn that fails is logged as any turn; the socket is gone, so there is nobody to tell.
      closed(instance, connection, code, reason.toString("utf8")).catch(() => undefined);
    });

    let webRequest: Request | undefined;
    connect(instance, connection, {
      get request() {
        webRequest ??= toWebRequest(request, uri, { isCredentialHidden: true });
        return webRequest;
      },
    }).catch(fail);
  }
}
