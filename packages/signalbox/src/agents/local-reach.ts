/** The ways to instances of a process that is alone: all of them are here, and no way takes a promise more than the event itself. */
import type { AgentDeliveries } from "../contracts/agent-deliveries.ts";
import type { AgentCall } from "./api/agent-stub.ts";
import type { AgentCalls } from "./doors/agent-calls.ts";
import type { LocalRequests } from "./doors/instance-requests.ts";
import { LocalSockets } from "./doors/local-sockets.ts";
import type { InstanceRef } from "./instance/instance-ref.ts";
import { manageHere, type ManagementReach } from "./management/reach.ts";
import { LOCAL_OBJECTS } from "./objects/object-calls.ts";
import { LOCAL_PLACEMENT } from "./placement/local-placement.ts";
import type { Here, Reach } from "./reach.ts";

export class LocalReach implements Reach {
  readonly placement = LOCAL_PLACEMENT;
  readonly objects = LOCAL_OBJECTS;
  readonly nodes = null;
  readonly requests: LocalRequests;
  readonly webhooks: AgentDeliveries;
  readonly sockets: LocalSockets;
  readonly management: ManagementReach;
  readonly #calls: AgentCalls;

  constructor(here: Here) {
    this.requests = here.requests;
    this.webhooks = here.webhooks;
    this.sockets = new LocalSockets(here);
    this.management = manageHere(here);
    this.#calls = here.calls;
  }

  callAgent(target: InstanceRef, call: AgentCall): Promise<unknown> {
    return this.#calls.call(target, call, this.#calls);
  }

  start(): void {}

  serveObjects(): void {}

  async retire(): Promise<void> {}

  async retireRest(): Promise<void> {}

  drain(): void {}

  async withdraw(): Promise<void> {}

  async close(): Promise<void> {}
}
