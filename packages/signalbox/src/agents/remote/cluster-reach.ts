/** The ways to instances of all nodes of a cluster: what this node passes to the nodes that own instances, and what it runs for other nodes. */
import type { AgentDeliveries } from "../../contracts/agent-deliveries.ts";
import type { NodeNetwork } from "../../contracts/node-network.ts";
import { DEFAULT_ACCOUNT } from "../../core/default-account.ts";
import type { AgentCall } from "../api/agent-stub.ts";
import type { InstanceRef } from "../instance/instance-ref.ts";
import type { ManagementReach } from "../management/reach.ts";
import { ClusterInstances } from "../placement/cluster-instances.ts";
import { ClusterPlacement } from "../placement/cluster-placement.ts";
import type { InstanceNodes } from "../placement/instance-nodes.ts";
import type { ClusterReachParts, OpenReach, Reach } from "../reach.ts";
import { ActivityTails } from "./activity-tails.ts";
import { createClusterDeliveries, serveDeliveries } from "./deliveries.ts";
import { ClusterManagement } from "./management.ts";
import { RemoteObjects } from "./objects/remote-objects.ts";
import { ClusterRequests, serveRequests } from "./requests.ts";
import { ClusterResidents } from "./cluster-residents.ts";
import { ExchangeServer } from "./serve-exchanges.ts";
import { RemoteSockets } from "./sockets/remote-sockets.ts";

/** Bodies of requests that other nodes have sent; one request of the largest size always fits. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;
/** How long the owners of instances may take to run `onClose` for the sockets of a node that stops. */
const REMOTE_CLOSE_MS = 2000;
/** After a node was declared dead: the others miss it within half a second, and the rest is for the claim and the restore. */
const REPLACE_MS = 3500;
/** The same for WebSockets, which may wait longer than requests: their clients do not. */
const REPLACE_SOCKETS_MS = 7500;
/** What this area offers to other nodes: the beginnings of the names. */
const SERVICES = ["agents.", "objects."];

export const openClusterReach: OpenReach = (parts) => new ClusterReach(parts);

class ClusterReach implements Reach {
  readonly placement: ClusterPlacement;
  readonly requests: ClusterRequests;
  readonly webhooks: AgentDeliveries;
  readonly sockets: RemoteSockets;
  readonly objects: RemoteObjects;
  readonly management: ManagementReach;
  readonly #parts: ClusterReachParts;
  readonly #network: NodeNetwork;
  readonly #tails = new ActivityTails();
  readonly #management: ClusterManagement;
  readonly #residents: ClusterResidents;
  readonly #instances: ClusterInstances;

  constructor(parts: ClusterReachParts) {
    const { network, ownership, classes } = parts;
    const { cluster, agents } = parts.config.file;
    const placement = new ClusterPlacement({
      network,
      ownership,
      maxReachMs: cluster.deadAfterMs + REPLACE_MS,
    });
    const all = { ...parts, placement };
    this.#parts = parts;
    this.#network = network;
    this.placement = placement;
    this.webhooks = createClusterDeliveries(parts.webhooks, network, placement);
    this.requests = new ClusterRequests(all);
    this.#management = new ClusterManagement({ network, placement, tails: this.#tails });
    this.#residents = new ClusterResidents(network, placement, parts);
    this.management = {
      findResidents: this.#residents.find,
      findStuck: this.#residents.findStuck,
      findPulses: this.#residents.findPulses,
      atOwner: (route, refOf) => this.#management.atOwner(route, refOf),
      workAtOwner: (name, work) => this.#management.workAtOwner(name, work),
    };
    const maxBrokenMs = cluster.deadAfterMs + REPLACE_SOCKETS_MS;
    this.sockets = new RemoteSockets({ ...all, definitions: classes.agents, maxBrokenMs });
    this.objects = new RemoteObjects({
      ...all,
      maxBrokenMs,
      account: DEFAULT_ACCOUNT,
      maxBufferedBytes: agents.maxBufferedBytes,
    });
    this.#instances = new ClusterInstances(all);
  }

  get nodes(): InstanceNodes {
    return this.#instances.nodes;
  }

  callAgent(target: InstanceRef, call: AgentCall): Promise<unknown> {
    return this.#parts.calls.call(target, call, this.requests);
  }

  start(): void {
    const { webhooks, config } = this.#parts;
    const { agents } = config.file;
    const exchanges = new ExchangeServer(this.#network, Math.max(MAX_BODY_BYTES, agents.maxBodyBytes));
    serveDeliveries(webhooks, this.#network, config.file.webhooks);
    serveRequests(this.#parts, exchanges);
    this.#management.serve(exchanges);
    this.#residents.serve();
    this.sockets.serve();
    this.#instances.start();
  }

  serveObjects(): void {
    this.objects.serve();
  }

  retire(signal: AbortSignal): Promise<void> {
    return this.#instances.retire(signal);
  }

  retireRest(): Promise<void> {
    return this.#instances.retireRest();
  }

  drain(): void {
    this.#tails.close();
  }

  async withdraw(): Promise<void> {
    // Other nodes run `onClose` of the sockets that were closed here.
    await this.sockets.whenEmpty(REMOTE_CLOSE_MS);
    for (const prefix of SERVICES) this.#network.withdraw(prefix);
    this.sockets.stop();
    this.#instances.stop();
  }

  /** What other nodes have begun here has ended, or will not run. */
  async close(): Promise<void> {
    await this.sockets.endSessions();
    this.objects.endSessions();
  }
}
