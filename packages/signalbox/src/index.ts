export {
  type AdmissionAnswer,
  type AdmissionContext,
  Agent,
  type AgentEnvironment,
  type AgentOptions,
  type AgentStub,
  callable,
  type CallableOptions,
  type Connection,
  type ConnectionContext,
  type DeadLetter,
  type EventOutcome,
  getAgentByName,
  type QueuedWebhookOptions,
  type QueueItem,
  type QueueOptions,
  RejectEvent,
  type RetryOptions,
  type Schedule,
  type ScheduleCriteria,
  type ScheduleOptions,
  type SqlParameter,
  type StreamingResponse,
  type WebhookEvent,
  type WebhookOptions,
} from "./agents/index.ts";
export { defineConfig, type ConfigFileInput } from "./config/index.ts";
export { OutgoingWebhookError } from "./outgoing/index.ts";
export {
  type EventRow,
  type LastEvent,
  type Retention,
  WebhookAgent,
  type WebhookAgentState,
} from "./webhooks/index.ts";
export { SignalboxError } from "@signalbox/protocol";
