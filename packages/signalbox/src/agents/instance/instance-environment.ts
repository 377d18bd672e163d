/** What all instances of a process share. */
import type { Clock } from "../../core/clock.ts";
import type { InstanceStore } from "../../engines/instance-store/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { OutgoingSender } from "../../outgoing/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentMetrics } from "../agent-metrics.ts";
import type { AgentEnvironment } from "../api/agent-host.ts";
import type { AgentClass } from "../api/agent.ts";
import type { AgentCall } from "../api/agent-stub.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { ActivityHub } from "./activity.ts";
import type { InstanceCatalog } from "./instance-catalog.ts";

export interface InstanceLimits {
  /** Events that may wait for one instance. */
  readonly maxWaitingTurns: number;
  readonly turnTimeoutMs: number;
  readonly maxStateBytes: number;
}

export interface InstanceEnvironment {
  readonly store: InstanceStore;
  readonly catalog: InstanceCatalog;
  readonly hub: SocketHub;
  readonly activity: ActivityHub;
  readonly metrics: AgentMetrics;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: InstanceLimits;
  readonly outgoing: OutgoingSender;
  readonly callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>;
  /** The variables that agents see. */
  readonly variables: AgentEnvironment;
  /** `this.env` of the agents of an account. */
  readonly envOf: (account: string) => AgentEnvironment;
  /** The name of the agent of a class in URLs. */
  readonly nameOf: (agentClass: AgentClass) => string;
}
