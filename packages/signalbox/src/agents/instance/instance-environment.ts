/** What all instances of a process share. */
import type { AlertFeedSlot } from "../../contracts/alert-feed.ts";
import type { TurnSpans } from "../../telemetry/turn-spans.ts";
import type { Clock } from "../../core/clock.ts";
import type { InstanceDatabase, InstanceStore, Ownership } from "../../engines/instance-store/index.ts";
import type { Transactions } from "../../engines/turn-runtime/index.ts";
import type { InstanceRef } from "./instance-ref.ts";
import type { OutgoingSender } from "../../outgoing/index.ts";
import type { Logger } from "../../telemetry/logger.ts";
import type { AgentMetrics } from "../agent-metrics.ts";
import type { AgentEnvironment } from "../api/agent-host.ts";
import type { AgentSql } from "../api/agent-context.ts";
import type { AgentClass } from "../api/agent.ts";
import type { AgentCall } from "../api/agent-stub.ts";
import type { SocketHub } from "../connections/socket-hub.ts";
import type { ActivityHub } from "./activity.ts";
import type { AgentPulses } from "./agent-pulse.ts";
import type { InstanceCatalog } from "./instance-catalog.ts";
import type { ProblemIndex } from "./problem-index.ts";
import type { Timeline } from "./timeline.ts";

export interface InstanceLimits {
  /** Events that may wait for one instance. */
  readonly maxWaitingTurns: number;
  readonly turnTimeoutMs: number;
  readonly maxStateBytes: number;
}

/** A delivery, `onConnect`, `onClose` and `onStart` end within this time unless the operator sets another. */
const EVENT_TIMEOUT_MS = 30_000;

/** The time limit of turns that someone waits for who cannot wait long: senders of webhooks, new connections. */
export function eventTimeoutMs({ turnTimeoutMs }: InstanceLimits): number {
  return turnTimeoutMs === 0 ? EVENT_TIMEOUT_MS : turnTimeoutMs;
}

export interface InstanceEnvironment {
  readonly store: InstanceStore;
  /** Which node runs an instance; null for a process that is alone. */
  readonly ownership: Ownership | null;
  readonly catalog: InstanceCatalog;
  readonly problems: ProblemIndex;
  /** Null if turns are not recorded. */
  readonly timeline: Timeline | null;
  readonly pulses: AgentPulses;
  readonly hub: SocketHub;
  readonly activity: ActivityHub;
  readonly metrics: AgentMetrics;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly limits: InstanceLimits;
  readonly outgoing: OutgoingSender;
  /** Null unless turns are traced. */
  readonly spans: TurnSpans | null;
  readonly alertFeed: AlertFeedSlot;
  readonly callAgent: (target: InstanceRef, call: AgentCall) => Promise<unknown>;
  /** The variables that agents see. */
  readonly variables: AgentEnvironment;
  /** `ctx.storage.sql` on the database of an instance. */
  readonly openSql: (parts: { database: InstanceDatabase; transactions: Transactions }) => AgentSql;
  /** `this.env` of the agents of an account. */
  readonly envOf: (account: string) => AgentEnvironment;
  /** The name in URLs of an agent that code names by its class, or by a name in any form. */
  readonly nameOf: (agent: AgentClass | string) => string;
}
