/** The published client of agents, for a test server. */
import { once } from "node:events";
import { AgentClient } from "agents/client";
import { WebSocket } from "ws";
import type { ServerProcess } from "../../support/server-process.ts";

export interface TestClient<State> {
  readonly ready: Promise<void>;
  /** The state that the server sent last. */
  readonly state: State | undefined;
  /** How often it has connected. */
  readonly openCount: number;
  call(method: string, ...args: unknown[]): Promise<unknown>;
  stream(method: string, args: unknown[], onChunk: (chunk: unknown) => void): Promise<unknown>;
  close(): void;
}

export function connectAgent<State>(server: ServerProcess, agent: string, name: string): TestClient<State> {
  const client = new AgentClient({
    agent,
    name,
    host: new URL(server.url).host,
    protocol: "ws",
    WebSocket,
  });
  let openCount = 0;
  client.addEventListener("open", () => (openCount += 1));
  // The client gives an attempt up after four seconds, and its `ready` of that time never resolves.
  const opened = once(client, "open");
  return {
    get openCount() {
      return openCount;
    },
    get ready() {
      return opened.then(() => client.ready);
    },
    get state() {
      return client.state as State | undefined;
    },
    call: (method, ...args) => client.call(method, args),
    stream: (method, args, onChunk) => client.call(method, args, { onChunk }),
    close: () => client.close(),
  };
}
