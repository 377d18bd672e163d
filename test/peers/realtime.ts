/** A provider of realtime sessions on loopback: records handshakes and messages, and answers as the test says, by default like OpenAI. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { Duplex } from "node:stream";
import { type WebSocket, WebSocketServer } from "ws";

export interface RealtimeSession {
  readonly socket: WebSocket;
  readonly request: IncomingMessage;
  /** Messages of the client, as text. */
  readonly messages: string[];
}

export interface RealtimePeer {
  readonly url: string;
  readonly sessions: RealtimeSession[];
  /** Requests for a session, also refused ones. */
  readonly handshakes: IncomingMessage[];
  /** Refuses the next handshakes when it returns a status. */
  refuse: (request: IncomingMessage) => { status: number; body: string; headers?: string } | null;
  /** Called for each new session, in place of the answers of OpenAI. */
  serve: (session: RealtimeSession) => void;
  close(): Promise<void>;
}

export const USAGE = {
  total_tokens: 300,
  input_tokens: 100,
  output_tokens: 200,
  input_token_details: { text_tokens: 60, audio_tokens: 40, cached_tokens: 0 },
  output_token_details: { text_tokens: 50, audio_tokens: 150 },
};

/** `session.created`, and for every `response.create` the events of a response. */
export function serveLikeOpenAi({ socket, request }: RealtimeSession): void {
  const model = new URL(request.url ?? "/", "http://peer").searchParams.get("model");
  send(socket, { type: "session.created", session: { id: "sess_1", model } });
  socket.on("message", (data: Buffer) => {
    const event = JSON.parse(data.toString()) as { type: string; session?: object };
    if (event.type === "session.update")
      send(socket, { type: "session.updated", session: { ...event.session } });
    if (event.type === "response.create") respond(socket);
  });
}

export function respond(socket: WebSocket, usage: object | null = USAGE): void {
  send(socket, { type: "response.created", response: { id: "resp_1", status: "in_progress" } });
  send(socket, { type: "response.output_text.delta", delta: "Hello" });
  send(socket, { type: "response.done", response: { id: "resp_1", status: "completed", usage } });
}

export function send(socket: WebSocket, event: object): void {
  socket.send(JSON.stringify(event));
}

export async function startRealtimePeer(): Promise<RealtimePeer> {
  const sockets = new WebSocketServer({
    noServer: true,
    handleProtocols: (protocols) => protocols.values().next().value ?? false,
  });
  const server = createServer((_request: IncomingMessage, response: ServerResponse) => response.end());
  const open = new Set<Duplex>();
  const peer: RealtimePeer = {
    url: "",
    sessions: [],
    handshakes: [],
    refuse: () => null,
    serve: serveLikeOpenAi,
    async close() {
      for (const socket of open) socket.destroy();
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
  server.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
    open.add(socket);
    socket.on("error", () => undefined);
    socket.once("close", () => open.delete(socket));
    peer.handshakes.push(request);
    const refusal = peer.refuse(request);
    if (refusal !== null) {
      const { status, body, headers = "" } = refusal;
      socket.end(
        `HTTP/1.1 ${status} Refused\r\ncontent-type: application/json\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
      );
      return;
    }
    sockets.handleUpgrade(request, socket, head, (webSocket) => {
      const session: RealtimeSession = { socket: webSocket, request, messages: [] };
      webSocket.on("error", () => undefined);
      webSocket.on("message", (data: Buffer) => session.messages.push(data.toString()));
      peer.sessions.push(session);
      peer.serve(session);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return Object.assign(peer, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}
