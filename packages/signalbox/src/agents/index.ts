export {
  Agent,
  type AgentEnvironment,
  type AgentOptions,
  type EventOutcome,
  type SqlParameter,
} from "./api/agent.ts";
export type { AdmissionAnswer, AdmissionContext } from "./api/admission.ts";
export type { AgentHost, WebhookOptions } from "./api/agent-host.ts";
export { type AgentStub, getAgentByName } from "./api/agent-stub.ts";
export { type AgentsArea, createAgentsArea } from "./agents-area.ts";
export type { AgentsDoor, DeliveryOutcome, DeliveryTarget } from "../contracts/agents-door.ts";
export { callable, type CallableOptions } from "./api/callable.ts";
export type { Connection, ConnectionContext } from "./api/connection.ts";
export { isRefusal } from "./instance/delivery.ts";
export { INITIAL_SCHEMA } from "./api/initial-schema.ts";
export type { DeadLetter } from "./work/dead-letters.ts";
export type { QueuedWebhookOptions } from "./work/queued-webhook.ts";
export { RECEIVE_EVENT } from "./api/receive-event.ts";
export { RejectEvent } from "./api/reject-event.ts";
export type { RetryOptions } from "./work/retry-options.ts";
export type { Schedule, ScheduleCriteria, ScheduleOptions } from "./work/schedules.ts";
export type { StreamingResponse } from "./api/streaming-response.ts";
export type { WebhookEvent } from "../contracts/webhook-event.ts";
export type { QueueItem, QueueOptions } from "./work/work-queue.ts";
