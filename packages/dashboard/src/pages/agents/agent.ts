/** Agents and instances in the management API. */
import type { AgentClass } from "@signalbox/client";

export type {
  Activity,
  AgentClass,
  DeadLetter,
  Instance,
  InstanceDetail,
  InstanceFailure,
  LiveConnection,
  QueueItem,
  RecordedTurn,
  RecordedTurnDetail,
  Schedule,
} from "@signalbox/client";

export type CallableMethod = AgentClass["callable"][number];
