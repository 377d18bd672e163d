/** Shared by the tests of a connection: a scripted server, connections that are closed after each test, and responses. */
import type { ClientFrame, RpcRequestFrame } from "@signalbox/protocol";
import { afterEach, beforeEach, expect } from "vitest";
import { AgentConnection, type AgentConnectionOptions } from "../src/agent/agent-connection.ts";
import { eventually } from "./eventually.ts";
import { type FrameServer, type FrameSocket, startFrameServer } from "./frame-server.ts";

export interface Counter {
  state: { count: number };
  add(by: number): number;
  slow(): Promise<string>;
  letters(stream: { send(piece: string): void; end(last?: number): void }, until: string): void;
}

export interface ConnectionBench {
  /** New for every test. */
  server: FrameServer;
  connect(options?: Partial<AgentConnectionOptions>): AgentConnection<Counter>;
  /** Frames of this type received on all connections, in order. */
  received(type: string): ClientFrame[];
}

/** Must be called once at the top of a test file. */
export function useConnectionBench(): ConnectionBench {
  const connections: AgentConnection<Counter>[] = [];
  const bench = {
    connect(options = {}) {
      const connection = new AgentConnection<Counter>({
        url: bench.server.url,
        agent: "Counter",
        name: "one",
        backoff: { baseDelayMs: 5, maxDelayMs: 20 },
        ...options,
      });
      connections.push(connection);
      return connection;
    },
    received: (type) =>
      bench.server.sockets.flatMap((socket) => socket.received).filter((frame) => frame.type === type),
  } as ConnectionBench;
  beforeEach(async () => {
    bench.server = await startFrameServer();
  });
  afterEach(async () => {
    for (const connection of connections.splice(0)) connection.close();
    await bench.server.stop();
  });
  return bench;
}

export const statusIs = (connection: AgentConnection<Counter>, status: string) =>
  eventually(() => expect(connection.status).toBe(status));

export function respond(socket: FrameSocket, frame: ClientFrame, result: unknown): void {
  const { id } = frame as RpcRequestFrame;
  socket.send({ type: "rpc", id, success: true, done: true, result });
}

export function chunk(socket: FrameSocket, frame: ClientFrame, result: unknown): void {
  const { id } = frame as RpcRequestFrame;
  socket.send({ type: "rpc", id, success: true, done: false, result });
}
