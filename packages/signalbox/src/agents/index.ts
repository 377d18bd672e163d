export {
  Agent,
  type AgentEnvironment,
  type AgentOptions,
  type EventOutcome,
  type SqlParameter,
} from "./agent.ts";
export type { AdmissionAnswer, AdmissionContext } from "./admission.ts";
export type { AgentHost, WebhookOptions } from "./agent-host.ts";
export { type AgentStub, getAgentByName } from "./agent-stub.ts";
export { type AgentsArea, createAgentsArea } from "./agents-area.ts";
export type { AgentsDoor, DeliveryOutcome, DeliveryTarget } from "./agents-door.ts";
export { callable, type CallableOptions } from "./callable.ts";
export type { Connection, ConnectionContext } from "./connections/connection.ts";
export { BASE_SCHEMA, RESERVED_NAME } from "./instance/base-schema.ts";
export { isRefusal } from "./instance/delivery.ts";
export { INITIAL_SCHEMA } from "./initial-schema.ts";
export type { DeadLetter } from "./work/dead-letters.ts";
export type { QueuedWebhookOptions } from "./work/queued-webhook.ts";
export { RECEIVE_EVENT } from "./instance/receive-event.ts";
export { RejectEvent } from "./reject-event.ts";
export type { RetryOptions } from "./work/retry-options.ts";
export type { Schedule, ScheduleCriteria, ScheduleOptions } from "./work/schedules.ts";
export type { StreamingResponse } from "./streaming-response.ts";
export type { WebhookEvent } from "../contracts/webhook-event.ts";
export type { QueueItem, QueueOptions } from "./work/work-queue.ts";
