/** WebSockets at the universal endpoint: who may open one, how many there are, and when they end. `universal-calls.ts` has what they do. */
import type { Duplex } from "node:stream";
import { DOOR_WORDS, SignalboxError } from "@signalbox/protocol";
import { type ServerOptions, type WebSocket, WebSocketServer } from "ws";
import type { Authenticator } from "../../accounts/index.ts";
import type { OwnServer } from "../../contracts/own-server.ts";
import { type HttpRequest, type MemoryBudget, toIncomingMessage } from "../../engines/http-server/index.ts";
import type { RequestContext } from "../../http/request-context.ts";
import { headersOfCaller } from "../call/as-caller.ts";
import { findGateway } from "../door/arrive.ts";
import { type Caller, holderOf, identifyCaller } from "../keys/caller-token.ts";
import { decodePath } from "../plan/forwarded-request.ts";
import type { Gateways } from "../settings/gateways.ts";
import { CLOSE_TIMEOUT_MS } from "./dial.ts";
import type { SessionList } from "./session-list.ts";
import { chooseSubprotocol, sortSubprotocols } from "./subprotocols.ts";
import { UniversalCalls, type UniversalCallsParts } from "./universal-calls.ts";

export interface UniversalSocketsParts {
  readonly gateways: Gateways;
  readonly authenticator: Authenticator;
  readonly server: Pick<OwnServer, "call">;
  readonly budget: MemoryBudget;
  readonly maxMessageBytes: number;
  readonly maxSessionMs: number;
  readonly idleTimeoutMs: number;
}

interface UniversalPath {
  readonly accountId: string;
  readonly gatewayId: string;
}

/** Proxies close connections without traffic after a minute. */
const PING_MS = 30_000;
const GOING_AWAY = 1001;
const TOKEN_ENDED = 4401;

/** Null for a path that names a provider, which is a realtime session. */
export function parseUniversalPath(path: string): UniversalPath | null {
  const [, version = "", account = "", gateway = "", ...rest] = path.split("/");
  if (version !== "v1" || gateway === "" || rest.some((segment) => segment !== "")) return null;
  const accountId = decodePath(account);
  return accountId === "" || DOOR_WORDS.has(accountId) ? null : { accountId, gatewayId: decodePath(gateway) };
}

export class UniversalSockets {
  readonly #parts: UniversalSocketsParts;
  readonly #places: Pick<SessionList, "reserve" | "isStopping">;
  readonly #server: WebSocketServer;
  readonly #open = new Set<WebSocket>();

  /** `places`: those of realtime sessions. */
  constructor(parts: UniversalSocketsParts, places: Pick<SessionList, "reserve" | "isStopping">) {
    this.#parts = parts;
    this.#places = places;
    this.#server = createServer(parts.maxMessageBytes);
  }

  upgrade(
    path: UniversalPath,
    request: HttpRequest,
    socket: Duplex,
    head: Buffer,
    { query }: RequestContext,
  ): void {
    const { gateways, authenticator, budget } = this.#parts;
    const gateway = findGateway(gateways, path, request);
    const caller = identifyCaller(authenticator, gateway, request, query);
    const holder = holderOf(caller, gateway);
    const place = this.#places.reserve(holder);
    if (place === null) {
      throw new SignalboxError(this.#places.isStopping ? "stopping" : "overloaded", {
        headers: { "retry-after": "1" },
      });
    }
    socket.once("close", () => place.release());
    const target = `/v1/${encodeURIComponent(gateway.accountId)}/${encodeURIComponent(gateway.id)}`;
    const memory = budget.shareOf(holder);
    this.#server.handleUpgrade(toIncomingMessage(request), socket, head, (client) =>
      this.#begin(client, caller, request, { target, memory }),
    );
  }

  close(): void {
    for (const client of this.#open) client.close(GOING_AWAY, "The server is stopping");
  }

  #begin(
    client: WebSocket,
    caller: Caller,
    request: HttpRequest,
    own: Pick<UniversalCallsParts, "target" | "memory">,
  ): void {
    const { server, maxMessageBytes, maxSessionMs, idleTimeoutMs, authenticator } = this.#parts;
    this.#open.add(client);
    // `ws` closes the socket itself after a protocol error, and the close event follows.
    client.on("error", () => undefined);
    const headers = Object.fromEntries(
      Object.entries(headersOfCaller({ request, caller })).filter(
        ([name]) => !name.startsWith("sec-websocket-"),
      ),
    );
    const calls = new UniversalCalls({ ...own, client, server, headers, maxMessageBytes });
    const startedAt = performance.now();
    const timer = setInterval(
      () => {
        const now = performance.now();
        if (now - startedAt > maxSessionMs)
          client.close(GOING_AWAY, "The session has reached its maximum time");
        else if (now - calls.lastMessageAt > idleTimeoutMs) client.close(GOING_AWAY, "The session was idle");
        else calls.checkAlive();
      },
      Math.min(PING_MS, maxSessionMs, idleTimeoutMs),
    );
    const { token } = caller;
    const stopWatching =
      token === null
        ? () => undefined
        : authenticator.watch({ kind: "token", token }, () =>
            client.close(TOKEN_ENDED, "The token has ended"),
          );
    client.once("close", () => {
      clearInterval(timer);
      stopWatching();
      this.#open.delete(client);
    });
    if (this.#places.isStopping) client.close(GOING_AWAY, "The server is stopping");
  }
}

function createServer(maxPayload: number): WebSocketServer {
  // The types of `ws` lack `closeTimeout`.
  const options: ServerOptions & { readonly closeTimeout: number } = {
    noServer: true,
    clientTracking: false,
    perMessageDeflate: false,
    maxPayload,
    closeTimeout: CLOSE_TIMEOUT_MS,
    handleProtocols: (protocols) => chooseSubprotocol("", sortSubprotocols([...protocols].join(", "))),
  };
  const server = new WebSocketServer(options);
  server.on("error", () => undefined);
  // `requireHandshake` has checked the request; without a listener `ws` would send a response of its own.
  server.on("wsClientError", ({ message }) => {
    throw new SignalboxError("malformed_http", { message });
  });
  return server;
}
