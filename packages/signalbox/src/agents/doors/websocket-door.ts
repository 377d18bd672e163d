/**
 * WebSockets on `/agents/{agent}/{name}[/…]`. A refused connection is accepted first and then closed with a final code: a browser cannot see
 * the status of a failed handshake, and stock clients would reconnect for ever.
 */
import { randomUUID } from "node:crypto";
import { type HttpRequest, toIncomingMessage } from "../../engines/http-server/index.ts";
import type { Duplex } from "node:stream";
import type { WebSocket, WebSocketServer } from "ws";
import type { RequestContext } from "../../http/request-context.ts";
import { requireUrlPath } from "../../http/request-target.ts";
import { closeCodeOf, toSignalboxError } from "../../http/render-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { overloaded } from "../../core/overload.ts";
import { type Access, findAccess, holderOf, passOn, withoutToken } from "./access.ts";
import { type AgentTarget, type DoorOptions, findTarget } from "./http-door.ts";
import { createDoorServer, RefusedSockets } from "./refused-sockets.ts";
import type { ConnectionContext } from "../api/connection.ts";
import { LocalSocket } from "../../engines/http-server/index.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import { ArrivedSocket, type SocketTarget } from "./arrived-socket.ts";
import type { AcceptedSocket } from "./connection-inbox.ts";
import { EarlyReader } from "./early-reader.ts";
import { requireInstance } from "./creation.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import { checkHost, toWebRequest } from "./web-request.ts";

const MAX_ID_LENGTH = 128;
/** How long a peer may take to answer the close frame, including the data buffered before it. */
const CLOSE_TIMEOUT_MS = 5000;

/** Joins sockets to their instances, wherever these run. */
export interface SocketRouter {
  join(accepted: AcceptedSocket, socket: LocalSocket, context: ConnectionContext): SocketTarget;
  /** Calls back once when the instance exists. The returned function cancels that. */
  onArrival(ref: InstanceRef, callback: () => void): () => void;
}

export class WebSocketDoor {
  readonly #options: DoorOptions;
  readonly #hub: SocketHub;
  readonly #sockets: SocketRouter;
  readonly #logger: Logger;
  readonly #server: WebSocketServer;
  readonly #refused = new RefusedSockets();

  constructor(options: DoorOptions, hub: SocketHub, sockets: SocketRouter, logger: Logger) {
    this.#options = options;
    this.#hub = hub;
    this.#sockets = sockets;
    this.#logger = logger;
    this.#server = createDoorServer(options.maxMessageBytes, CLOSE_TIMEOUT_MS);
  }

  /** Rejects for a request that is not a handshake. */
  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    let target: AgentTarget;
    let access: Access;
    let isThere = true;
    try {
      requireUrlPath(context.path);
      access = await findAccess(this.#options.access, request, context.query);
      target = findTarget(this.#options.definitions, context);
      checkHost(request);
      if (access.level === "edit") await requireInstance(this.#options, target, access);
      else isThere = await this.#exists(target, access);
      if (!this.#options.places.shareOf(holderOf(access)).takeUntilClosed(socket)) throw overloaded();
    } catch (error) {
      this.#refuse(request, socket, head, error);
      return;
    }
    this.#server.handleUpgrade(toIncomingMessage(request), socket, head, (webSocket) =>
      this.#accept(request, socket, webSocket, context, target, access, isThere),
    );
  }

  #exists({ definition, name }: AgentTarget, { account }: Access): Promise<boolean> {
    return this.#options.directory.exists({ account, agent: definition.kebab, name });
  }

  #refuse(request: HttpRequest, socket: Duplex, head: Buffer, error: unknown): void {
    const known = toSignalboxError(error);
    if (known.id === "internal") this.#logger.error({ err: known.cause ?? known }, "upgrade failed");
    const { code, reason } = closeCodeOf(known);
    this.#refused.refuse(request, socket, head, code, reason);
  }

  #accept(
    request: HttpRequest,
    socket: Duplex,
    webSocket: WebSocket,
    context: RequestContext,
    { definition, name }: AgentTarget,
    access: Access,
    isThere: boolean,
  ): void {
    const { account, level, principal } = access;
    const { directory } = this.#options;
    const query = new URLSearchParams(context.query);
    const givenId = query.get("_pk") ?? "";
    const id = givenId === "" || givenId.length > MAX_ID_LENGTH ? randomUUID() : givenId;
    const ref = { account, agent: definition.kebab, name };
    const accepted: AcceptedSocket = {
      definition,
      ref,
      id,
      uri: withoutToken(request.url ?? "/"),
      isReadonly: level === "read",
    };
    const local = new LocalSocket(webSocket, socket, this.#hub.limits);
    this.#hub.addSocket(local);
    const { authenticator } = this.#options.access;
    const arrived = new ArrivedSocket(webSocket, local, { principal, authenticator }, () =>
      this.#hub.removeSocket(local),
    );
    let webRequest: Request | undefined;
    const connectionContext: ConnectionContext = {
      props: access.identity?.props,
      get request() {
        const { target, options } = passOn(access, request.url ?? "/", false);
        webRequest ??= toWebRequest(request, target, options);
        return webRequest;
      },
    };
    const join = () => arrived.join(this.#sockets.join(accepted, local, connectionContext));
    const isEarly = !isThere && directory.find(ref) === undefined;
    // The instance may have been created during the handshake.
    if (!isEarly) join();
    else {
      const early = new EarlyReader(local, definition, name);
      arrived.wait(early, () => this.#sockets.onArrival(ref, join));
    }
  }
}
