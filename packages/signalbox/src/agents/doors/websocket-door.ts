/**
 * WebSockets on `/agents/{agent}/{name}[/…]`. A refused connection is accepted first and then closed with a final code: a browser cannot see
 * the status of a failed handshake, and stock clients would reconnect for ever.
 */
import { randomUUID } from "node:crypto";
import { type HttpRequest, toIncomingMessage } from "../../engines/http-server/index.ts";
import type { Duplex } from "node:stream";
import type { RawData, WebSocket, WebSocketServer } from "ws";
import type { RequestContext } from "../../http/request-context.ts";
import { closeCodeOf, toSignalboxError } from "../../http/render-error.ts";
import type { Logger } from "../../telemetry/logger.ts";
import { type Access, findAccess, passOn, withoutToken } from "./access.ts";
import { type AgentTarget, type DoorOptions, findTarget } from "./http-door.ts";
import { createDoorServer, RefusedSockets } from "./refused-sockets.ts";
import type { ConnectionContext } from "../api/connection.ts";
import { LiveConnection } from "../connections/live-connection.ts";
import { connect, receive } from "./connection-turns.ts";
import type { Departures } from "./departures.ts";
import { EarlyReader } from "./early-reader.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import { requireInstance } from "./creation.ts";
import { keyOf } from "../instance/instance-ref.ts";
import { checkHost, toWebRequest } from "./web-request.ts";

/** Messages of one connection that may wait for their turns; beyond it the socket is not read until half of them have ended. */
const MAX_UNANSWERED = 256;
const MAX_ID_LENGTH = 128;
/** How long a peer may take to answer the close frame, including the data buffered before it. */
const CLOSE_TIMEOUT_MS = 5000;

export class WebSocketDoor {
  readonly #options: DoorOptions;
  readonly #hub: SocketHub;
  readonly #departures: Departures;
  readonly #logger: Logger;
  readonly #server: WebSocketServer;
  readonly #refused = new RefusedSockets();

  constructor(options: DoorOptions, hub: SocketHub, departures: Departures, logger: Logger) {
    this.#options = options;
    this.#hub = hub;
    this.#departures = departures;
    this.#logger = logger;
    this.#server = createDoorServer(options.maxMessageBytes, CLOSE_TIMEOUT_MS);
  }

  /** Rejects for a request that is not a handshake. */
  async upgrade(request: HttpRequest, socket: Duplex, head: Buffer, context: RequestContext): Promise<void> {
    let target: AgentTarget;
    let access: Access;
    let isThere = true;
    try {
      access = await findAccess(this.#options.access, request, context.query);
      target = findTarget(this.#options.definitions, context);
      checkHost(request);
      if (access.level === "edit") await requireInstance(this.#options, target, access);
      else isThere = await this.#exists(target, access);
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
    const { authenticator } = this.#options.access;
    const query = new URLSearchParams(context.query);
    const uri = withoutToken(request.url ?? "/");
    const givenId = query.get("_pk") ?? "";
    const id = givenId === "" || givenId.length > MAX_ID_LENGTH ? randomUUID() : givenId;
    const ref = { account, agent: definition.kebab, name };
    const key = keyOf(ref);
    const group = this.#hub.group(key);
    const connection = new LiveConnection(group, id, uri, webSocket, socket, level === "read");
    this.#hub.add(group, connection);
    const stopWatching =
      principal === null ? undefined : authenticator.watch(principal, () => connection.endWithCredential());

    let unanswered = 0;
    const answered = () => {
      unanswered -= 1;
      if (unanswered === 0) connection.allAnswered();
      if (unanswered === MAX_UNANSWERED / 2) connection.resume();
    };
    const fail = (error: unknown) => {
      const { code, reason } = closeCodeOf(toSignalboxError(error));
      connection.closeNow(code, reason);
    };
    const { directory } = this.#options;
    const instance = () => directory.get(definition, account, name, key);
    // The instance may have been created during the handshake.
    let early =
      isThere || directory.find(ref) !== undefined ? null : new EarlyReader(connection, definition, name);
    let cancelArrival: (() => void) | undefined;
    /** Until the connect turn has ended. Never rejects. */
    let joining: Promise<void> | null = null;

    webSocket.on("pong", () => {
      connection.isAlive = true;
    });
    // `ws` closes the socket itself after a protocol error; without a listener the error would be uncaught.
    webSocket.on("error", () => undefined);
    webSocket.on("message", (data: RawData, isBinary: boolean) => {
      if (connection.isClosed) return;
      connection.isAlive = true;
      const message = isBinary ? (data as Buffer) : (data as Buffer).toString("utf8");
      if (early !== null) {
        early.refuse(message);
        return;
      }
      unanswered += 1;
      connection.messageArrived();
      if (unanswered === MAX_UNANSWERED) connection.pause();
      const wait = joining ?? (principal === null ? null : (authenticator.whenFresh()?.catch(fail) ?? null));
      const taken =
        wait === null
          ? receive(instance, connection, message)
          : wait.then(() =>
              connection.isAdmitted && !connection.isClosed
                ? receive(instance, connection, message)
                : undefined,
            );
      taken.then(answered, answered);
    });
    webSocket.on("close", (code: number, reason: Buffer) => {
      stopWatching?.();
      cancelArrival?.();
      connection.markClosed();
      if (connection.listeners?.has("close") !== true) connection.dropListeners();
      group.leave(connection);
      this.#hub.remove(group, connection);
      const depart = () => {
        this.#departures.add({
          definition,
          account,
          name,
          connection,
          code,
          reason: reason.toString("utf8"),
        });
      };
      if (joining === null) depart();
      else void joining.then(depart);
    });

    let webRequest: Request | undefined;
    const connectionContext: ConnectionContext = {
      props: access.identity?.props,
      get request() {
        const { target, options } = passOn(access, request.url ?? "/", false);
        webRequest ??= toWebRequest(request, target, options);
        return webRequest;
      },
    };
    const join = () => {
      early = null;
      joining = new Promise<void>((resolve) => {
        connect(instance, connection, connectionContext, resolve).catch(fail).finally(resolve);
      }).then(() => {
        joining = null;
      });
    };
    if (early === null) {
      join();
    } else {
      early.greet();
      cancelArrival = directory.onArrival(group.key, join);
    }
  }
}
