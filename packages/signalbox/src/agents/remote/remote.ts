/** The agents of a cluster: what this node passes to the nodes that own instances, and what it runs for other nodes. */
import type { AgentsDoor } from "../../contracts/agents-door.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import type { Route, RouteRequest } from "../../http/route.ts";
import type { AgentCalls, CallsElsewhere } from "../doors/agent-calls.ts";
import type { DoorOptions, RequestsElsewhere } from "../doors/http-door.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { FindResidents, ResidentsParts } from "../management/residents.ts";
import type { FindStuck } from "../management/stuck.ts";
import type { Placement } from "../placement/placement.ts";
import { ActivityTails } from "./activity-tails.ts";
import { createClusterDoor, type DeliveryLimits, serveDeliveries } from "./deliveries.ts";
import { ClusterManagement } from "./management.ts";
import { ClusterRequests, serveRequests } from "./requests.ts";
import { ClusterResidents } from "./residents.ts";
import { ExchangeServer } from "./serve-exchanges.ts";

export interface RemoteParts extends ResidentsParts {
  readonly network: NodeNetwork;
  readonly placement: Placement;
  /** Deliveries to instances of this node. */
  readonly webhooks: AgentsDoor;
  readonly calls: AgentCalls;
  /** Created later than the remote part. */
  readonly door: () => DoorOptions;
  readonly deliveryLimits: DeliveryLimits;
  now(): number;
}

export interface Remote {
  readonly webhooks: AgentsDoor;
  readonly requests: RequestsElsewhere & CallsElsewhere;
  readonly findResidents: FindResidents;
  readonly findStuck: FindStuck;
  /** The route with a handler that runs at the owner of the instance. */
  atOwner(route: Route, refOf: (request: RouteRequest) => InstanceRef): Route;
  /** Answers other nodes. Called when the agents are loaded. */
  serve(): void;
  /** Ends what does not end by itself. */
  drain(): void;
}

export type OpenRemote = (parts: RemoteParts) => Remote;

/** Bodies of requests that other nodes have sent; one request of the largest size always fits. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

export const openRemote: OpenRemote = (parts) => {
  const { network, placement, webhooks, calls, door, deliveryLimits } = parts;
  const tails = new ActivityTails();
  const requestParts = { network, placement, calls, door };
  const requests = new ClusterRequests(requestParts);
  const management = new ClusterManagement({ network, placement, tails });
  const residents = new ClusterResidents(network, placement, parts);
  return {
    webhooks: createClusterDoor(webhooks, network, placement),
    requests,
    findResidents: residents.find,
    findStuck: residents.findStuck,
    atOwner: (route, refOf) => management.atOwner(route, refOf),
    serve() {
      const exchanges = new ExchangeServer(network, Math.max(MAX_BODY_BYTES, door().maxBodyBytes));
      serveDeliveries(webhooks, network, deliveryLimits);
      serveRequests(requestParts, exchanges);
      management.serve(exchanges);
      residents.serve();
    },
    drain: () => tails.close(),
  };
};
