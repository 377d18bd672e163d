/**
 * The ways to instances, wherever they run. Chosen once: `LocalReach` for a process that is alone, `remote/cluster-reach.ts` for a node of a
 * cluster. Everything above instances uses these ways and does not know how many nodes there are.
 */
import type { Config } from "../config/index.ts";
import type { AgentDeliveries } from "../contracts/agent-deliveries.ts";
import type { NodeNetwork } from "../contracts/node-network.ts";
import type { Clock } from "../core/clock.ts";
import type { Ownership } from "../engines/instance-store/index.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { AgentCall } from "./api/agent-stub.ts";
import type { SocketHub } from "./connections/socket-hub.ts";
import type { AgentCalls } from "./doors/agent-calls.ts";
import type { Departures } from "./doors/departures.ts";
import type { InstanceRequests, LocalRequests } from "./doors/instance-requests.ts";
import type { SocketRouter } from "./doors/websocket-door.ts";
import type { AgentPulses } from "./instance/agent-pulse.ts";
import type { Directory } from "./instance/directory.ts";
import type { InstanceCatalog } from "./instance/instance-catalog.ts";
import type { InstanceClasses } from "./instance/instance-classes.ts";
import type { InstanceRef } from "./instance/instance-ref.ts";
import type { ManagementReach } from "./management/reach.ts";
import type { ObjectReach } from "./objects/object-calls.ts";
import type { ObjectHost } from "./objects/object-host.ts";
import type { InstanceNodes } from "./placement/instance-nodes.ts";
import type { Placement } from "./placement/placement.ts";

/** The instances of this process, and what runs events on them. */
export interface Here {
  readonly classes: InstanceClasses;
  readonly directory: Directory;
  readonly catalog: InstanceCatalog;
  readonly hub: SocketHub;
  readonly pulses: AgentPulses;
  readonly departures: Departures;
  readonly objects: ObjectHost;
  readonly calls: AgentCalls;
  readonly requests: LocalRequests;
  readonly webhooks: AgentDeliveries;
  now(): number;
}

export interface Reach {
  readonly placement: Placement;
  readonly requests: InstanceRequests;
  readonly webhooks: AgentDeliveries;
  readonly sockets: SocketRouter;
  readonly objects: ObjectReach;
  readonly management: ManagementReach;
  /** Null for a process that is alone. */
  readonly nodes: InstanceNodes | null;
  /** Calls an instance for the code of another one. */
  callAgent(target: InstanceRef, call: AgentCall): Promise<unknown>;
  /** The agents are loaded: other nodes are answered. */
  start(): void;
  /** The classes of the worker are registered: calls of other nodes to its objects are answered. Before, they are tried again. */
  serveObjects(): void;
  /** Gives the instances of this node to others, until the signal aborts. */
  retire(signal: AbortSignal): Promise<void>;
  /** Gives away what came here since `retire`, if it was called. */
  retireRest(): Promise<void>;
  /** Ends what does not end by itself. */
  drain(): void;
  /** Nothing more is taken from other nodes. */
  withdraw(): Promise<void>;
  /** The instances of this node have ended. */
  close(): Promise<void>;
}

/** The nodes that share the instances. */
export interface AgentsCluster {
  readonly network: NodeNetwork;
  readonly ownership: Ownership;
  readonly openReach: OpenReach;
}

export interface ClusterReachParts extends Here, Omit<AgentsCluster, "openReach"> {
  readonly config: Config;
  readonly clock: Clock;
  readonly steadyClock: Clock;
  readonly logger: Logger;
}

/** Loaded on demand: a process that is alone has no other nodes. */
export type OpenReach = (parts: ClusterReachParts) => Reach;
