export {
  AgentConnection,
  type AgentConnectionOptions,
  type ConnectionEvents,
  type ConnectionSnapshot,
  type ConnectionStatus,
} from "./agent/agent-connection.ts";
export { AgentError, type AgentErrorReason } from "./agent/agent-error.ts";
export type { AgentStub, ArgumentsOf, MethodName, ResultOf, StateOf } from "./agent/agent-shape.ts";
export type { BackoffPolicy } from "./agent/backoff.ts";
export type { CallStream } from "./agent/call-stream.ts";
export type { OutboxBound } from "./agent/outbox.ts";
export type { CallOptions } from "./agent/pending-calls.ts";
export type { OpenSocket, Socket } from "./agent/socket.ts";
export type * from "./management/accounts.ts";
export type * from "./management/agents.ts";
export type * from "./management/instance.ts";
export type * from "./management/alerts.ts";
export type * from "./management/audit.ts";
export { SignalboxApiError } from "./management/api-error.ts";
export type * from "./management/cluster.ts";
export type * from "./management/gateways.ts";
export { List, type Page } from "./management/list.ts";
export { InvalidNameError, pathOf, type Query, withQuery } from "./management/path.ts";
export type * from "./management/logs.ts";
export type * from "./management/budgets.ts";
export type * from "./management/guardrails.ts";
export type * from "./management/routes.ts";
export type * from "./management/provider-keys.ts";
export type * from "./management/tags.ts";
export type * from "./management/tokens.ts";
export {
  type ApiResponse,
  type ApiRequest,
  type Method,
  type RequestOptions,
  type ResultInfo,
  Transport,
  type TransportOptions,
} from "./management/transport.ts";
export type { Usage, UsageQuery } from "./management/usage.ts";
export type * from "./management/webhook-routing.ts";
export type * from "./management/webhooks.ts";
export { type AccountClient, type AgentTarget, type LoginLink, SignalboxClient } from "./signalbox-client.ts";
