export {
  AgentConnection,
  type AgentConnectionOptions,
  type ConnectionEvents,
  type ConnectionSnapshot,
  type ConnectionStatus,
} from "./agent/agent-connection.ts";
export { AgentError, type AgentErrorReason } from "./agent/agent-error.ts";
export type { AgentStub, StateOf } from "./agent/agent-shape.ts";
export type { BackoffPolicy } from "./agent/backoff.ts";
export type { CallStream } from "./agent/call-stream.ts";
export type { OutboxBound } from "./agent/outbox.ts";
export type { CallOptions } from "./agent/pending-calls.ts";
export type { OpenSocket, Socket } from "./agent/socket.ts";
