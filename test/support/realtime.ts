/** A client of realtime sessions that collects what it receives. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { type ClientOptions, WebSocket } from "ws";
import { waitUntil } from "./wait-until.ts";

export interface RealtimeClient {
  readonly socket: WebSocket;
  readonly events: Record<string, unknown>[];
  /** Code and reason, once the session is closed. */
  readonly closed: Promise<{ readonly code: number; readonly reason: string }>;
  send(event: object): void;
  /** The first event of this type; rejects if the session closes before. */
  event(type: string): Promise<Record<string, unknown>>;
}

export interface Refusal {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
}

function connect(url: string, protocols: string[], options: ClientOptions): WebSocket {
  return new WebSocket(url.replace(/^http/, "ws"), protocols, { ...options, perMessageDeflate: false });
}

export async function openSession(
  url: string,
  options: ClientOptions & { readonly protocols?: string[] } = {},
): Promise<RealtimeClient> {
  const socket = connect(url, options.protocols ?? [], options);
  const events: Record<string, unknown>[] = [];
  let hasClosed = false;
  const closed = new Promise<{ code: number; reason: string }>((resolve) => {
    socket.on("close", (code, reason) => {
      hasClosed = true;
      resolve({ code, reason: reason.toString() });
    });
  });
  socket.on("message", (data: Buffer) => events.push(JSON.parse(data.toString()) as Record<string, unknown>));
  await once(socket, "open");
  socket.on("error", () => undefined);
  return {
    socket,
    events,
    closed,
    send: (event) => socket.send(JSON.stringify(event)),
    async event(type) {
      const find = () => events.find((event) => event["type"] === type);
      await waitUntil(find, (event) => event !== undefined || hasClosed);
      const found = find();
      if (found === undefined) throw new Error(`the session closed before ${type}`);
      return found;
    },
  };
}

/** The HTTP response to a handshake that is refused. */
export async function refusedSession(
  url: string,
  options: ClientOptions & { readonly protocols?: string[] } = {},
): Promise<Refusal> {
  const socket = connect(url, options.protocols ?? [], options);
  socket.on("error", () => undefined);
  return new Promise((resolve, reject) => {
    socket.on("open", () => {
      socket.terminate();
      reject(new Error("the session was opened"));
    });
    socket.on("unexpected-response", (_request, response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk));
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          headers: response.headers,
          body: Buffer.concat(chunks).toString(),
        }),
      );
    });
  });
}
