/** A scripted WebSocket server for tests of the client's own behaviour: reconnection, waiting, settling. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { ClientFrame, ServerFrame } from "@signalbox/protocol";
import { type WebSocket, WebSocketServer } from "ws";

export interface FrameSocket {
  readonly request: IncomingMessage;
  /** Received frames, parsed, in order. */
  readonly received: ClientFrame[];
  send(...frames: ServerFrame[]): void;
  sendText(text: string): void;
  close(code: number, reason?: string): void;
  /** Cuts the connection without a closing handshake. */
  cut(): void;
  /** Stops reading from the network. */
  pause(): void;
  readonly isOpen: boolean;
}

export interface FrameServer {
  readonly url: string;
  /** All connections, oldest first. */
  readonly sockets: FrameSocket[];
  /** Called for each new connection. Default: sends identity and state. */
  onConnect: (socket: FrameSocket) => void;
  onFrame: (socket: FrameSocket, frame: ClientFrame) => void;
  stop(): Promise<void>;
}

export const greet = (socket: FrameSocket, state: unknown = { count: 0 }): void =>
  socket.send(
    { type: "cf_agent_identity", agent: "counter", name: "one", stateFollows: true },
    { type: "cf_agent_state", state },
  );

export async function startFrameServer(port = 0): Promise<FrameServer> {
  const listener = new WebSocketServer({ host: "127.0.0.1", port });
  await once(listener, "listening");
  const server: FrameServer = {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    sockets: [],
    onConnect: (socket) => greet(socket),
    onFrame: () => {},
    async stop() {
      for (const client of listener.clients) client.terminate();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
  listener.on("connection", (ws, request) => {
    const socket = wrap(ws, request);
    server.sockets.push(socket);
    ws.on("message", (bytes: Buffer) => {
      const frame = JSON.parse(bytes.toString()) as ClientFrame;
      socket.received.push(frame);
      server.onFrame(socket, frame);
    });
    server.onConnect(socket);
  });
  return server;
}

function wrap(ws: WebSocket, request: IncomingMessage): FrameSocket {
  return {
    request,
    received: [],
    send: (...frames) => frames.forEach((frame) => ws.send(JSON.stringify(frame))),
    sendText: (text) => ws.send(text),
    close: (code, reason) => ws.close(code, reason),
    cut: () => ws.terminate(),
    pause: () => ws.pause(),
    get isOpen() {
      return ws.readyState === ws.OPEN;
    },
  };
}
