/**
 * The api of the agents' area. Its folders are layers, and each imports only those below it:
 *
 *   doors, management, modules   events from outside; operators; users' modules
 *   remote                       work for instances that run on other nodes; beside the doors
 *   objects                      classes that extend `DurableObject`, on the same instances as agents
 *   placement                    which node of a cluster runs an instance
 *   instance                     one instance in memory, and the directory of all of them
 *   connections                  WebSockets and what is sent through them
 *   api                          what users import: `Agent` and its types
 *   work                         queue, schedules and dead letters in the instance's database
 */
export { Agent, type AgentClass, type SqlParameter } from "./api/agent.ts";
export type { AgentOptions } from "./api/agent-options.ts";
export type { AdmissionAnswer, AdmissionContext } from "./api/admission.ts";
export type { AgentEnvironment, AgentHost, WebhookOptions } from "./api/agent-host.ts";
export type { AgentContext, SqlCursor } from "./api/agent-context.ts";
export { type AgentNamespace, type AgentStub, getAgentByName } from "./api/agent-stub.ts";
export { type CurrentAgent, getCurrentAgent } from "./api/current-agent.ts";
export { type AgentsArea, createAgentsArea, loadConfigured } from "./agents-area.ts";
export type {
  AgentDeliveries,
  DeliveryOutcome,
  DeliveryTarget,
  SignedHeaders,
} from "../contracts/agent-deliveries.ts";
export { callable, type CallableOptions } from "./api/callable.ts";
export type {
  Connection,
  ConnectionContext,
  ConnectionListener,
  ConnectionMessage,
  RequestDetails,
} from "./api/connection.ts";
export { type EventOutcome, RECEIVE_EVENT } from "./api/event-handler.ts";
export { isRefusal } from "./instance/handle-event.ts";
export { exportKind } from "./objects/class-marks.ts";
export type { ObjectHost } from "./objects/object-host.ts";
export type { ObjectClass, ObjectNamespace } from "./objects/object-types.ts";
export { exportNameOf } from "./objects/object-namespace.ts";
export { bindWorker } from "./objects/worker-binding.ts";
export { installWorkerGlobals } from "./objects/worker-globals.ts";
export { INITIAL_SCHEMA } from "./api/initial-schema.ts";
export type { AgentsCluster, OpenReach } from "./reach.ts";
export { databaseName, type InstanceRef } from "./instance/instance-ref.ts";
export { BASE_SCHEMA, RESERVED_NAMES } from "./instance/base-schema.ts";
export type { DeadLetter } from "./work/dead-letters.ts";
export type { QueuedWebhookOptions } from "./work/queued-webhook.ts";
export { RejectEvent } from "./api/reject-event.ts";
export type { RetryOptions } from "./work/retry-options.ts";
export type { Schedule } from "./work/schedule-row.ts";
export type { ScheduleCriteria, ScheduleOptions } from "./work/schedules.ts";
export { StreamingResponse } from "./api/streaming-response.ts";
export type { WebhookEvent } from "../contracts/webhook-event.ts";
export type { QueueItem, QueueOptions } from "./work/work-queue.ts";

// For the worker mode.
export { createDoorServer } from "./doors/refused-sockets.ts";
export { compilerSettings, SYNTAX } from "./modules/compiler-settings.ts";
export { registerModuleHooks } from "./modules/module-hooks.ts";
export { urlFor } from "./modules/worker-modules.ts";
export { readFlags } from "./objects/compatibility.ts";
export { currentObject } from "./objects/current-work.ts";
export { fetchFollowing } from "./objects/follow-redirects.ts";
export { createStub } from "./objects/rpc-stub.ts";
export { endingWith, reach, transferArguments, transferResult } from "./objects/rpc-values.ts";
export { DurableObject } from "./objects/workers-module.ts";
